//! Loads a program from the JSON that `plait.ir.nodes.encoded` writes.

use super::json::{Loaded, array, bytes, field, number, optional, positions, text, truth};
use super::purity::mark_pure;
use super::{
    Attribute, Class, Expression, Function, Handler, Kind, Lambda, Part, Process, Program, Property, SharedObject,
    Symbol, Symbols,
};
use crate::vm::value::encode::prefix;
use crate::vm::value::{Pid, Traits};
use rustc_hash::FxHashMap as HashMap;
use serde::Deserialize;
use serde_json::Value as Json;

/// What the loader has found so far.
#[derive(Default)]
pub(super) struct Loader {
    symbols: HashMap<String, Symbol>,
    pub lambdas: Vec<Option<Lambda>>,
    pub constants: Vec<Box<[u8]>>,
    constant_numbers: HashMap<Box<[u8]>, u32>,
    pub roles: Vec<Box<str>>,
    /// Names, kinds and members of the classes, for constants.
    pub class_numbers: HashMap<Box<str>, u32>,
    pub members: Vec<Vec<Box<str>>>,
    pub usual_enum: Vec<bool>,
    pub kinds: Vec<Kind>,
    /// The number of parameters of each function.
    pub parameters: Vec<usize>,
    /// Of the function that is being loaded.
    pub slots: usize,
    pub positions: usize,
    pub monitors: usize,
    /// How many tests there are so far.
    pub tests: u16,
}

impl Loader {
    pub fn symbol(&mut self, name: &str) -> Symbol {
        let next = self.symbols.len() as Symbol;
        *self.symbols.entry(name.to_owned()).or_insert(next)
    }

    pub fn constant(&mut self, content: Vec<u8>) -> u32 {
        let content = content.into_boxed_slice();
        if let Some(&known) = self.constant_numbers.get(&content) {
            // Equal constants of two places are one object only if nothing in them can change.
            if !content.iter().any(|byte| matches!(byte, b'l' | b'd' | b'S' | b'D' | b'q' | b'o' | b'm' | b'c')) {
                return known;
            }
        }
        let next = self.constants.len() as u32;
        self.constant_numbers.insert(content.clone(), next);
        self.constants.push(content);
        next
    }
}

/// A program from JSON.
pub fn load(content: &[u8]) -> Result<Program, String> {
    let mut deserializer = serde_json::Deserializer::from_slice(content);
    // Nested statements make deep trees.
    deserializer.disable_recursion_limit();
    let json = Json::deserialize(&mut deserializer).map_err(|error| format!("the program is not JSON: {error}"))?;
    let mut loader = Loader::default();
    let symbols = Symbols {
        id: loader.symbol("id"),
        status: loader.symbol("status"),
        crashed: loader.symbol("crashed"),
        inbox: loader.symbol("inbox"),
        sender: loader.symbol("sender"),
        name: loader.symbol("name"),
        value: loader.symbol("value"),
        role: loader.symbol("role"),
        index: loader.symbol("index"),
        maxlen: loader.symbol("maxlen"),
        numerator: loader.symbol("numerator"),
        denominator: loader.symbol("denominator"),
    };
    let processes = array(field(&json, "processes")?)?;
    let mut roles = processes.iter().map(|p| Ok(text(field(p, "role")?)?.into())).collect::<Loaded<Vec<Box<str>>>>()?;
    roles.sort();
    roles.dedup();
    loader.roles = roles;
    let classes = array(field(&json, "classes")?)?;
    for (place, class) in classes.iter().enumerate() {
        loader.class_numbers.insert(text(field(class, "name")?)?.into(), place as u32);
        loader.members.push(names(field(class, "fields")?)?);
        loader.usual_enum.push(text(field(class, "kind")?)? == "enum" && !is_unusual(class)?);
        loader.kinds.push(kind(class)?);
    }
    loader.positions = processes.len();
    loader.monitors = array(field(&json, "monitors")?)?.len();
    let objects = json.get("shared").map_or(Ok(&[][..]), array)?;
    let given = array(field(&json, "functions")?)?;
    loader.parameters = given.iter().map(|f| number(field(f, "parameters")?)).collect::<Loaded<_>>()?;
    let mut functions = Vec::new();
    for function in given {
        loader.slots = number(field(function, "slots")?)?;
        functions.push(Function {
            name: text(field(function, "name")?)?.into(),
            parameters: number(field(function, "parameters")?)?,
            slots: number(field(function, "slots")?)?,
            body: loader.block(field(function, "body")?)?,
        });
    }
    let mut made = classes.iter().map(|class| loader.class(class)).collect::<Loaded<Vec<_>>>()?;
    // All names are known only now.
    for (class, json) in made.iter_mut().zip(classes) {
        class.attributes = loader.attributes(class, json)?;
    }
    let processes: Box<[Process]> = processes.iter().map(|json| loader.process(json)).collect::<Loaded<_>>()?;
    let monitors: Box<[(u32, Option<u32>)]> = array(field(&json, "monitors")?)?
        .iter()
        .map(|pair| match array(pair)? {
            [class, function] => Ok((number(class)? as u32, optional(function, number)?.map(|f| f as u32))),
            _ => Err("a monitor has a class and a function".to_owned()),
        })
        .collect::<Loaded<_>>()?;
    let mut shared: Vec<SharedObject> = Vec::new();
    let mut cells = 0;
    for object in objects {
        let [class, role, index] = array(object)? else {
            return Err("a shared object has a class and an id".to_owned());
        };
        let (class, role, index) = (number(class)? as u32, text(role)?.into(), number(index)? as u32);
        shared.push(SharedObject { class, role, index, first: cells as u32 });
        cells += made.get(class as usize).ok_or("a class does not exist")?.fields.len();
    }
    let mut offsets = vec![0];
    let classes_of_views = processes.iter().map(|p| p.class).chain(monitors.iter().map(|m| m.0));
    for class in classes_of_views.chain(shared.iter().map(|s| s.class)) {
        let fields = made.get(class as usize).ok_or("a class does not exist")?.fields.len();
        offsets.push(offsets[offsets.len() - 1] + fields as u32);
    }
    let mut program = Program {
        functions: functions.into(),
        lambdas: loader.lambdas.into_iter().flatten().collect(),
        classes: made.into(),
        class_numbers: loader.class_numbers,
        roles: loader.roles.into(),
        positions: processes.iter().enumerate().map(|(place, p)| (p.pid, place as u16)).collect(),
        processes,
        first_spare: number(field(&json, "first_spare")?)?,
        handlers: array(field(&json, "handlers")?)?
            .iter()
            .map(|of_class| array(of_class)?.iter().map(handler).collect())
            .collect::<Loaded<_>>()?,
        monitors,
        shared: shared.into(),
        cells,
        properties: array(field(&json, "properties")?)?
            .iter()
            .map(|json| optional(json, property))
            .collect::<Loaded<_>>()?,
        inserts: json.get("inserts").map_or(Ok(false), truth)?,
        constants: loader.constants.into(),
        field_offsets: offsets.into(),
        symbols,
    };
    check(&program)?;
    mark_pure(&mut program);
    Ok(program)
}

fn kind(class: &Json) -> Loaded<Kind> {
    Ok(match text(field(class, "kind")?)? {
        "enum" => Kind::Enum,
        "flag" => Kind::Flag,
        "tuple" => Kind::Tuple,
        "derived" => Kind::Derived,
        "record" => Kind::Record,
        "message" => Kind::Message,
        "process" => Kind::Process,
        "monitor" => Kind::Monitor,
        "shared" => Kind::Shared,
        other => return Err(format!("unknown kind of class {other}")),
    })
}

fn names(json: &Json) -> Loaded<Vec<Box<str>>> {
    array(json)?.iter().map(|name| Ok(text(name)?.into())).collect()
}

fn entries<'a>(json: &'a Json, name: &str) -> Loaded<impl Iterator<Item = (&'a String, &'a Json)>> {
    Ok(field(json, name)?.as_object().ok_or_else(|| format!("{name} is not an object"))?.iter())
}

/// Whether a class defines operators, which the virtual machine would not use.
fn is_unusual(class: &Json) -> Loaded<bool> {
    let known = ["__init__", "__post_init__", "__repr__", "__str__", "__new__"];
    let operator = |name: &String| name.starts_with("__") && name.ends_with("__") && !known.contains(&name.as_str());
    Ok(entries(class, "methods")?.any(|(name, _)| operator(name)))
}

impl Loader {
    fn class(&mut self, json: &Json) -> Loaded<Class> {
        let name = text(field(json, "name")?)?;
        let kind = kind(json)?;
        let (mut values, mut flags) = (Vec::new(), Vec::new());
        for value in array(field(json, "values")?)? {
            let content = bytes(value)?;
            if let (Kind::Flag, Some(Expression::Int(number))) = (kind, self.simple(&content)) {
                flags.push(u32::try_from(number).map_err(|_| "a flag of more than 32 bits")?);
            }
            values.push(if content.is_empty() { None } else { Some(self.constant(content)) });
        }
        let mut methods = HashMap::default();
        for (method, function) in entries(json, "methods")? {
            methods.insert(self.symbol(method), number(function)? as u32);
        }
        for name in names(field(json, "fields")?)? {
            self.symbol(&name);
        }
        for attribute in ["properties", "constants"] {
            for (name, _) in entries(json, attribute)? {
                self.symbol(name);
            }
        }
        Ok(Class {
            name: name.into(),
            kind,
            fields: names(field(json, "fields")?)?.into(),
            values: values.into(),
            flags: names(field(json, "fields")?)?.into_iter().zip(flags).collect(),
            mutable: truth(field(json, "mutable")?)?,
            traits: Traits {
                equal: truth(field(json, "equal")?)?,
                ordered: truth(field(json, "ordered")?)?,
                hashable: truth(field(json, "hashable")?)?,
            },
            unusual: is_unusual(json)?,
            bases: array(field(json, "bases")?)?.iter().map(|b| Ok(number(b)? as u32)).collect::<Loaded<_>>()?,
            attributes: Box::default(),
            methods,
            prefix: prefix(kind, name),
        })
    }

    /// What each name means for an instance of a class.
    fn attributes(&mut self, class: &Class, json: &Json) -> Loaded<Box<[Attribute]>> {
        let mut found = vec![Attribute::Missing; self.symbols.len()];
        for (name, content) in entries(json, "constants")? {
            let place = self.symbol(name) as usize;
            found[place] = Attribute::Constant(self.constant(bytes(content)?));
        }
        for (name, function) in entries(json, "properties")? {
            let place = self.symbol(name) as usize;
            found[place] = Attribute::Property(number(function)? as u32);
        }
        if !matches!(class.kind, Kind::Enum | Kind::Flag) {
            for (number, name) in class.fields.iter().enumerate() {
                let place = self.symbol(name) as usize;
                found[place] = Attribute::Field(number as u32);
            }
        }
        Ok(found.into())
    }

    fn process(&self, json: &Json) -> Loaded<Process> {
        let role = text(field(json, "role")?)?;
        let role = self.roles.binary_search_by(|known| (**known).cmp(role)).map_err(|_| "an unknown role")?;
        let index = number(field(json, "index")?)? as u32;
        Ok(Process {
            class: number(field(json, "class_")?)? as u32,
            pid: Pid { role: role as u32, index },
            handlers: number(field(json, "handlers")?)?,
        })
    }
}

fn handler(json: &Json) -> Loaded<Handler> {
    let function = |name: &str| Ok::<_, String>(optional(field(json, name)?, number)?.map(|f| f as u32));
    Ok(Handler {
        step: function("step")?,
        guard: function("guard")?,
        quorum: function("quorum")?,
        accept: function("accept")?,
        several: truth(field(json, "several")?)?,
    })
}

fn property(json: &Json) -> Loaded<Property> {
    let part = |json| {
        Ok(Part {
            function: number(field(json, "function")?)? as u32,
            positions: positions(field(json, "positions")?)?,
        })
    };
    Ok(Property {
        function: number(field(json, "function")?)? as u32,
        every: truth(field(json, "every")?)?,
        parts: array(field(json, "parts")?)?.iter().map(part).collect::<Loaded<_>>()?,
    })
}

/// Check the numbers of functions, classes and positions, so that execution need not.
fn check(program: &Program) -> Loaded<()> {
    let functions = program.functions.len();
    let handlers = program.handlers.iter().flatten();
    let mut used: Vec<u32> = handlers.flat_map(|h| [h.step, h.guard, h.quorum, h.accept]).flatten().collect();
    used.extend(program.monitors.iter().filter_map(|m| m.1));
    for property in program.properties.iter().flatten() {
        used.push(property.function);
        used.extend(property.parts.iter().map(|part| part.function));
        if property.parts.iter().flat_map(|p| p.positions.iter()).any(|&p| p as usize >= program.processes.len()) {
            return Err("a part of a property has a position that does not exist".to_owned());
        }
    }
    for class in &program.classes {
        used.extend(class.methods.values());
        used.extend(
            class.attributes.iter().filter_map(|a| if let Attribute::Property(f) = a { Some(*f) } else { None }),
        );
    }
    if used.iter().any(|&f| f as usize >= functions) {
        return Err("a function does not exist".to_owned());
    }
    if program.processes.iter().any(|p| p.handlers >= program.handlers.len()) {
        return Err("the handlers of a class do not exist".to_owned());
    }
    if program.functions.iter().any(|f| f.parameters > f.slots) {
        return Err("a function has more parameters than slots".to_owned());
    }
    Ok(())
}
