//! Small programs, as JSON. `tests/ir` compares the machine with CPython on whole models.

use crate::vm::machine::NO_ID;
use crate::vm::program::Binary;
use crate::vm::run::operators::{binary, float_divmod};
use crate::vm::run::sequence::{slice, subscript};
use crate::vm::value::compare::{Relation, equal, hash, identical, ordered};
use crate::vm::value::decode::decoded;
use crate::vm::value::encode::encoded;
use crate::vm::value::table::{Map, Table};
use crate::vm::value::{Pid, Value};
use crate::vm::{Delivered, FieldResult, LocalFields, Machine, ORDER_MATTERS, Program, load};
use serde_json::{Value as Json, json};
use std::sync::Arc;

// -- helpers ---------------------------------------------------------------------------------------------------------

fn base64(content: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in content.chunks(3) {
        let bits = chunk.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..=chunk.len() {
            out.push(DIGITS[(bits >> (18 - 6 * place) & 63) as usize] as char);
        }
        (chunk.len()..3).for_each(|_| out.push('='));
    }
    out
}

fn function(parameters: usize, slots: usize, body: Json) -> Json {
    json!({"name": "f", "file": "", "line": 1, "parameters": parameters, "slots": slots, "body": body})
}

fn program_of(functions: Json, handlers: Json) -> Json {
    let class = |name: &str, kind: &str, fields: Json| {
        json!({"name": name, "kind": kind, "fields": fields, "values": [], "mutable": false, "equal": true,
            "ordered": false, "hashable": true, "bases": [], "methods": {}, "properties": {}, "constants": {}})
    };
    json!({
        "functions": functions,
        "classes": [class("m.Node", "process", json!(["count", "seen"])), class("m.Ping", "message", json!(["number"]))],
        "processes": [
            {"class_": 0, "role": "Node", "index": 0, "handlers": 0},
            {"class_": 0, "role": "Node", "index": 1, "handlers": 0},
            {"class_": 0, "role": "Node", "index": 2, "handlers": 0},
        ],
        "first_spare": 2, "handlers": [handlers], "monitors": [], "properties": [],
    })
}

fn loaded(json: &Json) -> Arc<Program> {
    Arc::new(load(json.to_string().as_bytes()).unwrap_or_else(|error| panic!("{error}")))
}

fn empty() -> Arc<Program> {
    loaded(&program_of(json!([]), json!([])))
}

fn constant(value: &Value) -> Json {
    json!(["Constant", base64(&encoded(&empty(), value).expect("it has bytes"))])
}

fn int(number: i64) -> Json {
    constant(&Value::Int(number))
}

fn local(slot: usize) -> Json {
    json!(["Local", slot])
}

/// The result of a function of some values, and the values afterwards.
fn call(body: Json, slots: usize, arguments: &[Value]) -> Result<(Value, Vec<Value>), &'static str> {
    let program = loaded(&program_of(json!([function(arguments.len(), slots, body)]), json!([])));
    let given: Vec<Vec<u8>> = arguments.iter().map(|value| encoded(&program, value).expect("bytes")).collect();
    let given: Vec<&[u8]> = given.iter().map(Vec::as_slice).collect();
    let (result, after) = Machine::new(program.clone()).call(0, &given, 0).map_err(|bail| bail.reason())?;
    let value = |content: &Vec<u8>| decoded(&program, content, false).expect("a value").0;
    Ok((value(&result), after.iter().map(value).collect()))
}

fn ints(numbers: &[i64]) -> Vec<Value> {
    numbers.iter().map(|&number| Value::Int(number)).collect()
}

fn list(numbers: &[i64]) -> Value {
    Value::list(ints(numbers))
}

fn set(numbers: &[i64]) -> Value {
    let mut table = Table::default();
    ints(numbers).into_iter().for_each(|number| assert!(table.add(number).is_ok()));
    Value::set(table)
}

fn same(a: &Value, b: &Value) -> bool {
    encoded(&empty(), a) == encoded(&empty(), b)
}

fn compute(operator: Binary, a: i64, b: i64) -> Option<i64> {
    binary(operator, &Value::Int(a), &Value::Int(b)).ok().and_then(|value| value.as_int())
}

// -- operators -------------------------------------------------------------------------------------------------------

#[test]
fn division_rounds_down_and_the_rest_has_the_sign_of_the_divisor() {
    for (a, b, quotient, rest) in [(7, 2, 3, 1), (-7, 2, -4, 1), (7, -2, -4, -1), (-7, -2, 3, -1), (6, -3, -2, 0)] {
        assert_eq!(compute(Binary::FloorDivide, a, b), Some(quotient), "{a} // {b}");
        assert_eq!(compute(Binary::Modulo, a, b), Some(rest), "{a} % {b}");
    }
    assert_eq!(compute(Binary::Modulo, 1, 0), None);
    assert_eq!(float_divmod(-7.5, 2.0), Ok((-4.0, 0.5)));
}

#[test]
fn integers_beyond_64_bits_bail() {
    assert_eq!(compute(Binary::Add, i64::MAX, 1), None);
    assert_eq!(compute(Binary::FloorDivide, i64::MIN, -1), None);
    assert_eq!(compute(Binary::Modulo, i64::MIN, -1), Some(0));
    assert_eq!(compute(Binary::ShiftLeft, 1, 62), Some(1 << 62));
    assert_eq!(compute(Binary::ShiftLeft, 1, 63), None);
    assert_eq!(compute(Binary::ShiftLeft, -1, 100), None);
    assert_eq!(compute(Binary::ShiftRight, -5, 100), Some(-1));
    assert_eq!(compute(Binary::Power, 2, 62), Some(1 << 62));
    assert_eq!(compute(Binary::Power, 2, -1), None);
}

#[test]
fn slices_as_in_python() {
    let items = Value::tuple(ints(&[0, 1, 2, 3, 4]));
    let taken =
        |bounds| slice(&items, bounds).ok().map(|v| v.as_items().map(|i| i.iter().filter_map(Value::as_int).collect()));
    let expect = |bounds, wanted: &[i64]| assert_eq!(taken(bounds), Some(Some(wanted.to_vec())), "{bounds:?}");
    expect([Some(1), Some(3), None], &[1, 2]);
    expect([Some(-2), None, None], &[3, 4]);
    expect([None, Some(-10), None], &[]);
    expect([None, None, Some(-1)], &[4, 3, 2, 1, 0]);
    expect([Some(3), Some(0), Some(-2)], &[3, 1]);
    expect([Some(10), Some(-10), Some(-3)], &[4, 1]);
    expect([None, Some(-1), Some(2)], &[0, 2]);
    assert_eq!(taken([None, None, Some(0)]), None);
    assert!(subscript(&items, &Value::Int(5)).is_err());
    assert_eq!(subscript(&items, &Value::Bool(true)).ok().and_then(|v| v.as_int()), Some(1));
}

#[test]
fn equal_numbers_of_different_types_are_one_key() {
    let mut map = Map::default();
    for (key, value) in [(Value::Int(1), 1), (Value::Bool(true), 2), (Value::Float(1.0), 3)] {
        assert!(map.set(key, Value::Int(value)).is_ok());
    }
    assert_eq!(map.len(), 1);
    assert!(identical(&map.keys()[0], &Value::Int(1)));
    assert_eq!(map.values()[0].as_int(), Some(3));
    assert_eq!(hash(&Value::Int(1)), hash(&Value::Float(1.0)));
    assert_eq!(equal(&Value::Float(f64::NAN), &Value::Float(f64::NAN)), Ok(false));
}

#[test]
fn large_tables_find_their_keys() {
    let mut table = Table::default();
    for number in 0..100 {
        assert_eq!(table.add(Value::Int(number)), Ok((number as usize, true)));
    }
    assert_eq!(table.find(&Value::Float(70.0)), Ok(Some(70)));
    assert_eq!(table.remove_at(10).as_int(), Some(10));
    assert_eq!(table.find(&Value::Int(70)), Ok(Some(69)));
    assert_eq!(table.find(&Value::Int(10)), Ok(None));
    assert!(table.find(&list(&[1])).is_err());
}

#[test]
fn order_of_unlike_values_bails() {
    let less = |a: &Value, b: &Value| ordered(a, b, Relation::Less);
    assert!(less(&Value::Int(1), &Value::str("a")).is_err());
    assert_eq!(less(&Value::Int(1), &Value::Float(1.5)), Ok(true));
    assert_eq!(less(&Value::tuple(ints(&[1])), &Value::tuple(ints(&[1, 0]))), Ok(true));
    assert_eq!(less(&set(&[1]), &set(&[1, 2])), Ok(true));
    assert_eq!(less(&set(&[1]), &set(&[1])), Ok(false));
    assert_eq!(less(&Value::Pid(Pid { role: 0, index: 1 }), &Value::Pid(Pid { role: 0, index: 2 })), Ok(true));
}

// -- values ----------------------------------------------------------------------------------------------------------

#[test]
fn values_survive_a_round_trip() {
    let program = empty();
    let mut map = Map::default();
    assert!(map.set(Value::str("b"), Value::None).is_ok() && map.set(Value::str("a"), list(&[-1, 300])).is_ok());
    let values = [
        Value::None,
        Value::Int(i64::MIN),
        Value::Float(-0.0),
        Value::Float(f64::NAN),
        Value::str("naïve"),
        Value::Pid(Pid { role: 0, index: 7 }),
        Value::tuple([Value::Bool(true), Value::Int(1), set(&[3, -1, 2])]),
        Value::dict(map),
    ];
    for value in values {
        let content = encoded(&program, &value).expect("bytes");
        let (again, _) = decoded(&program, &content, false).expect("a value");
        assert_eq!(encoded(&program, &again).expect("bytes"), content);
    }
    assert!(decoded(&program, b"i", false).is_err());
    assert!(decoded(&program, b"t\xff\xff\x7f", false).is_err());
}

#[test]
fn one_list_in_two_places_has_no_bytes() {
    let shared = list(&[1]);
    assert!(encoded(&empty(), &Value::tuple([shared.clone(), shared])).is_err());
}

// -- programs --------------------------------------------------------------------------------------------------------

#[test]
fn two_names_of_one_list_are_one_list() {
    let body = json!([
        ["Assign", [["LocalTarget", 1]], local(0)],
        ["Evaluate", ["CallMethod", local(1), "append", [int(5)], {}]],
        ["AugmentedAssign", ["LocalTarget", 1], "+", ["ListDisplay", [int(6)]]],
        ["Return", ["Compare", local(0), ["is"], [local(1)]]],
    ]);
    let (result, after) = call(body, 2, &[list(&[1])]).expect("an answer");
    assert!(result.truth() && same(&after[0], &list(&[1, 5, 6])));
}

#[test]
fn a_chain_of_comparisons_stops_early() {
    // 1 < 0 < [][0] is false: the last operand is not evaluated.
    let beyond = json!(["Subscript", ["ListDisplay", []], int(0)]);
    let chain = json!([["Return", ["Compare", int(1), ["<", "<"], [int(0), beyond]]]]);
    assert!(!call(chain, 0, &[]).expect("an answer").0.truth());
}

#[test]
fn a_list_may_grow_while_it_is_iterated_but_a_dict_may_not() {
    let short = json!(["Compare", ["CallBuiltin", "len", [local(0)], {}], ["<"], [int(6)]]);
    let append = json!(["Evaluate", ["CallMethod", local(0), "append", [local(1)], {}]]);
    let body = json!([["For", ["LocalTarget", 1], local(0), [["If", short, [append], []]], []]]);
    let (_, after) = call(body, 2, &[list(&[1, 2])]).expect("an answer");
    assert!(same(&after[0], &list(&[1, 2, 1, 2, 1, 2])));

    let mut map = Map::default();
    assert!(map.set(Value::Int(1), Value::None).is_ok());
    let grow = json!(["Assign", [["SubscriptTarget", local(0), int(2)]], int(0)]);
    let body = json!([["For", ["LocalTarget", 1], local(0), [grow], []]]);
    assert!(call(body, 2, &[Value::dict(map)]).is_err());
}

#[test]
fn a_constant_list_cannot_change() {
    let body = json!([["Evaluate", ["CallMethod", constant(&list(&[1])), "append", [int(2)], {}]]]);
    assert_eq!(call(body, 0, &[]).err(), Some("change of a shared or read-only value"));
}

#[test]
fn endless_programs_and_deep_recursion_bail() {
    let forever = json!([["While", constant(&Value::Bool(true)), [["Evaluate", int(1)]], []]]);
    assert_eq!(call(forever, 0, &[]).err(), Some("a question that takes too long"));
    let recursive = json!([["Return", ["CallFunction", 0, []]]]);
    assert_eq!(call(recursive, 0, &[]).err(), Some("deep recursion"));
}

#[test]
fn what_the_loader_does_not_know_bails_when_it_is_reached() {
    let odd = json!(["CallBuiltin", "time.time", [], {}]);
    let body = json!([["Return", ["Or", [int(1), odd.clone()]]]]);
    assert_eq!(call(body, 0, &[]).expect("an answer").0.as_int(), Some(1));
    assert_eq!(call(json!([["Return", odd]]), 0, &[]).err(), Some("function time.time"));
    assert!(load(b"{}").is_err());
}

// -- steps -----------------------------------------------------------------------------------------------------------

struct Local(Vec<Vec<u8>>);

impl LocalFields for Local {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn field(&self, index: usize) -> (u32, &[u8]) {
        (index as u32, &self.0[index])
    }
}

/// The machine of a handler (and guard) with this body.
fn handler(body: Json, slots: usize) -> (Machine, Arc<Program>) {
    let handlers = json!([{"step": 0, "guard": 0, "guarded": true, "quorum": null, "accept": null, "several": false}]);
    let program = loaded(&program_of(json!([function(2, slots, body)]), handlers));
    (Machine::new(program.clone()), program)
}

fn local_state(program: &Program, count: i64, seen: &Value) -> Local {
    Local(vec![encoded(program, &Value::Int(count)).expect("bytes"), encoded(program, seen).expect("bytes")])
}

fn ping(number: i64) -> Vec<u8> {
    let mut content = b"D\x06m.Ping\x01".to_vec();
    content.extend(encoded(&empty(), &Value::Int(number)).expect("bytes"));
    content
}

fn own(name: &str) -> Json {
    json!(["Attribute", local(0), name])
}

#[test]
fn a_step_changes_fields_and_sends() {
    let body = json!([
        ["AugmentedAssign", ["AttributeTarget", local(0), "count"], "+", ["Attribute", local(1), "number"]],
        ["Evaluate", ["CallMethod", own("seen"), "add", [["Attribute", local(1), "sender"]], {}]],
        ["Evaluate", ["Send", ["Attribute", local(1), "sender"], ["Construct", 1, [own("count")]]]],
    ]);
    let (mut machine, program) = handler(body, 2);
    let state = local_state(&program, 3, &Value::set(Table::default()));
    let content = ping(4);
    let outcomes =
        machine.step(0, 0, &state, &[Delivered { sender: 1, id: NO_ID, content: &content }]).expect("outcomes");
    assert_eq!(outcomes.len(), 1);
    assert_eq!(outcomes[0].sends, [(1, ping(7))]);
    assert_eq!(outcomes[0].fields[0], FieldResult::Changed(encoded(&program, &Value::Int(7)).expect("bytes")));
    assert!(matches!(&outcomes[0].fields[1], FieldResult::Changed(content) if content.starts_with(b"S\x01P")));
    assert_eq!(machine.fields_read(), 0b11);
    // The same code as a guard changes the state.
    assert!(machine.guard(0, 0, &state, Some(Delivered { sender: 1, id: NO_ID, content: &content })).is_err());
}

#[test]
fn each_combination_of_choices_is_an_outcome() {
    let options = json!(["SetDisplay", [int(2), int(1)]]);
    let body = json!([[
        "Assign",
        [["AttributeTarget", local(0), "count"]],
        ["BinaryOperation", "+", ["Choose", options], ["Choose", constant(&list(&[10, 20, 30]))]]
    ]]);
    let (mut machine, program) = handler(body, 2);
    let state = local_state(&program, 0, &Value::None);
    let content = ping(0);
    let outcomes =
        machine.step(0, 0, &state, &[Delivered { sender: 1, id: NO_ID, content: &content }]).expect("outcomes");
    let counts =
        [11, 21, 31, 12, 22, 32].map(|n| FieldResult::Changed(encoded(&program, &Value::Int(n)).expect("bytes")));
    assert!(outcomes.iter().map(|outcome| &outcome.fields[0]).eq(&counts));
    assert_eq!(outcomes[1].choices.len(), 2);
}

#[test]
fn a_spawn_branches_over_the_slots() {
    let body = json!([["Assign", [["AttributeTarget", local(0), "seen"]], ["Spawn", 0, [int(1), local(0)]]]]);
    let (mut machine, program) = handler(body.clone(), 2);
    let state = local_state(&program, 0, &Value::None);
    let content = ping(0);
    let message = [Delivered { sender: 1, id: NO_ID, content: &content }];
    // The process itself is no value of a state.
    assert!(machine.step(0, 0, &state, &message).is_err());
    let body = json!([["Assign", [["AttributeTarget", local(0), "seen"]], ["Spawn", 0, [int(1), int(2)]]]]);
    let (mut machine, _) = handler(body, 2);
    let outcomes = machine.step(0, 0, &state, &message).expect("outcomes");
    assert_eq!(outcomes.iter().map(|o| o.expected.clone()).collect::<Vec<_>>(), [[(2, true)], [(2, false)]]);
    assert_eq!(outcomes[0].spawns[0].1[..2], [0, b't']);
    assert!(outcomes[0].no_slot.is_none() && outcomes[1].no_slot.is_some());
}

#[test]
fn an_answer_that_depends_on_the_order_of_a_set_bails() {
    let assign = |value: Json| json!([["Assign", [["AttributeTarget", local(0), "count"]], value]]);
    let first = json!(["CallBuiltin", "next", [["CallBuiltin", "iter", [own("seen")], {}]], {}]);
    let sorted = json!(["CallBuiltin", "sorted", [own("seen")], {}]);
    let content = ping(0);
    let message = [Delivered { sender: 1, id: NO_ID, content: &content }];
    let (mut machine, program) = handler(assign(first), 2);
    let state = local_state(&program, 0, &set(&[1, 2, 3]));
    assert_eq!(machine.step(0, 0, &state, &message), Err(ORDER_MATTERS));
    let (mut machine, _) = handler(assign(sorted), 2);
    assert!(machine.step(0, 0, &state, &message).is_ok());
}
