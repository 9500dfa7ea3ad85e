//! Finds the comprehensions, key functions and options of choices without effects. Where the order of evaluation cannot be seen, the order of
//! a set cannot either, and the machine need not try others.

use super::{Attribute, BuiltinCall, Comprehension, Expression, Lambda, Program, Statement, Target};

/// What the analysis knows of the functions so far: those that are not known to have effects.
struct Known<'a> {
    functions: &'a [bool],
    lambdas: &'a [Lambda],
    /// Whether all methods and computed attributes of the program with this name are pure, by symbol.
    methods: &'a dyn Fn(u32) -> bool,
    /// A subscript may insert a key into a `defaultdict`.
    inserts: bool,
}

/// Set the field `pure` of all comprehensions, calls and choices.
pub fn mark_pure(program: &mut Program) {
    let mut named: Vec<(u32, u32)> = Vec::new();
    for class in &program.classes {
        named.extend(class.methods.iter().map(|(&name, &function)| (name, function)));
        for (name, attribute) in class.attributes.iter().enumerate() {
            if let Attribute::Property(function) = attribute {
                named.push((name as u32, *function));
            }
        }
    }
    let inserts = program.inserts;
    let mut pure = vec![true; program.functions.len()];
    loop {
        let methods = |name: u32| named.iter().all(|&(n, function)| n != name || pure[function as usize]);
        let known = Known { functions: &pure, lambdas: &program.lambdas, methods: &methods, inserts };
        let next: Vec<bool> = program.functions.iter().map(|f| known.block(&f.body)).collect();
        if next == pure {
            break;
        }
        pure = next;
    }
    let methods = |name: u32| named.iter().all(|&(n, function)| n != name || pure[function as usize]);
    // Lambdas may contain comprehensions, and are read while the others are marked.
    let mut lambdas = std::mem::take(&mut program.lambdas).into_vec();
    for place in 0..lambdas.len() {
        let mut body = std::mem::take(&mut lambdas[place].body);
        let known = Known { functions: &pure, lambdas: &lambdas, methods: &methods, inserts };
        body.iter_mut().for_each(|statement| known.mark_statement(statement));
        lambdas[place].body = body;
    }
    let known = Known { functions: &pure, lambdas: &lambdas, methods: &methods, inserts };
    for function in &mut program.functions {
        function.body.iter_mut().for_each(|statement| known.mark_statement(statement));
    }
    program.lambdas = lambdas.into();
}

impl Known<'_> {
    fn block(&self, block: &[Statement]) -> bool {
        block.iter().all(|statement| self.statement(statement))
    }

    /// Assignments to variables of its own are no effects of a function.
    fn statement(&self, statement: &Statement) -> bool {
        let target = |target: &Target| self.target(target);
        match statement {
            Statement::Evaluate(value) | Statement::AssignLocal(_, value) | Statement::Assert(value) => {
                self.in_function(value)
            }
            Statement::Assign(targets, value) => targets.iter().all(target) && self.in_function(value),
            Statement::Parallel(targets, values) => targets.iter().all(target) && self.all(values),
            Statement::Augmented(parts) => {
                // On a variable it may change an object in place.
                matches!(parts.0, Target::Local(_))
                    && matches!(parts.2, Expression::Int(_))
                    && self.in_function(&parts.2)
            }
            Statement::If(parts) | Statement::While(parts) => {
                self.in_function(&parts.0) && self.block(&parts.1) && self.block(&parts.2)
            }
            Statement::For(parts) => {
                target(&parts.0) && self.in_function(&parts.1) && self.block(&parts.2) && self.block(&parts.3)
            }
            Statement::Return(value) => value.as_ref().is_none_or(|value| self.in_function(value)),
            Statement::Break | Statement::Continue | Statement::Raise => true,
            Statement::Delete(_) => false,
        }
    }

    /// In the body of a function, `:=` sets a variable of its own.
    fn in_function(&self, value: &Expression) -> bool {
        match value {
            Expression::Assigned(_, value) => self.expression(value),
            _ => self.expression(value),
        }
    }

    fn target(&self, target: &Target) -> bool {
        match target {
            Target::Local(_) => true,
            Target::Starred(inner) => self.target(inner),
            Target::Tuple(targets) => targets.iter().all(|target| self.target(target)),
            Target::Attribute(..) | Target::Subscript(_) | Target::Slice(_) => false,
        }
    }

    fn all(&self, items: &[Expression]) -> bool {
        items.iter().all(|item| self.expression(item))
    }

    fn comprehension(&self, comprehension: &Comprehension) -> bool {
        self.expression(&comprehension.element)
            && comprehension
                .clauses
                .iter()
                .all(|c| self.target(&c.target) && self.expression(&c.iterable) && self.all(&c.conditions))
    }

    fn expression(&self, expression: &Expression) -> bool {
        use Expression as E;
        let some = |value: &Option<Expression>| value.as_ref().is_none_or(|value| self.expression(value));
        match expression {
            E::None | E::Bool(_) | E::Int(_) | E::Float(_) | E::Pid(_) | E::Enum(_) | E::Constant(_) => true,
            E::Local(_) | E::SelfId | E::Builtin(_) | E::UnboundMethod(_) | E::Unsupported(_) => true,
            E::ViewRole(..) | E::ViewMonitor(_) | E::ViewMessages(..) => true,
            // An attribute may be a computed one.
            E::Attribute(value, name) => (self.methods)(*name) && self.expression(value),
            E::Unary(_, value) | E::Starred(value) | E::ViewProcess(value) | E::Tested(_, value) => {
                self.expression(value)
            }
            E::Subscript(_) if self.inserts => false,
            E::Subscript(two) | E::Binary(_, two) | E::Compare(_, two) => {
                self.expression(&two.0) && self.expression(&two.1)
            }
            E::Sliced(parts) => self.expression(&parts.0) && parts.1.iter().all(some),
            E::And(items) | E::Or(items) | E::Tuple(items) | E::List(items) | E::Set(items) | E::Joined(items) => {
                self.all(items)
            }
            E::Chain(parts) => self.expression(&parts.0) && parts.1.iter().all(|(_, right)| self.expression(right)),
            E::Conditional(parts) => {
                self.expression(&parts.0) && self.expression(&parts.1) && self.expression(&parts.2)
            }
            E::Dict(pairs) => pairs.iter().all(|(key, value)| some(key) && self.expression(value)),
            E::ListComprehension(inner) | E::SetComprehension(inner) | E::Generator(inner) => self.comprehension(inner),
            E::DictComprehension(parts) => self.comprehension(&parts.0) && self.expression(&parts.1),
            E::Formatted(parts) => self.expression(&parts.0),
            E::Lambda(lambda, defaults) => {
                // A nested function with statements may assign variables of the function around it.
                let body = self.lambdas.get(*lambda as usize).map(|lambda| &*lambda.body);
                self.all(defaults) && matches!(body, Some([Statement::Return(Some(value))]) if self.expression(value))
            }
            E::Function(function, bound) => {
                self.functions[*function as usize] && bound.as_ref().is_none_or(|bound| self.expression(bound))
            }
            E::CallFunction(function, arguments) => self.functions[*function as usize] && self.all(arguments),
            E::CallMethod(call) => {
                call.method.is_none_or(|method| !method.changes())
                    && (self.methods)(call.name)
                    && self.expression(&call.value)
                    && self.all(&call.arguments)
                    && some(&call.keywords.key)
                    && some(&call.keywords.reverse)
                    && some(&call.keywords.only)
            }
            E::CallBuiltin(call) => self.all(&call.arguments) && self.keywords(call),
            E::IsInstance(parts) => self.expression(&parts.0),
            E::Construct(_, values) => self.all(values),
            E::Replace(parts) => self.expression(&parts.0) && parts.1.iter().all(|(_, value)| self.expression(value)),
            E::Assigned(..) | E::CallValue(_) => false,
            E::Send(_) | E::Broadcast(_) | E::Announce(_) | E::Choose(_) | E::Spawn(..) => false,
        }
    }

    fn keywords(&self, call: &BuiltinCall) -> bool {
        let k = &call.keywords;
        [&k.key, &k.reverse, &k.default, &k.start, &k.strict, &k.repeat, &k.initial, &k.only]
            .into_iter()
            .flatten()
            .all(|value| self.expression(value))
    }

    // -- marking -----------------------------------------------------------------------------------------------------

    fn mark_block(&self, block: &mut [Statement]) {
        block.iter_mut().for_each(|statement| self.mark_statement(statement));
    }

    fn mark_statement(&self, statement: &mut Statement) {
        match statement {
            Statement::Evaluate(value) | Statement::AssignLocal(_, value) | Statement::Assert(value) => {
                self.mark(value)
            }
            Statement::Assign(targets, value) => {
                targets.iter_mut().for_each(|target| self.mark_target(target));
                self.mark(value);
            }
            Statement::Parallel(targets, values) => {
                targets.iter_mut().for_each(|target| self.mark_target(target));
                values.iter_mut().for_each(|value| self.mark(value));
            }
            Statement::Augmented(parts) => {
                self.mark_target(&mut parts.0);
                self.mark(&mut parts.2);
            }
            Statement::If(parts) | Statement::While(parts) => {
                self.mark(&mut parts.0);
                self.mark_block(&mut parts.1);
                self.mark_block(&mut parts.2);
            }
            Statement::For(parts) => {
                self.mark_target(&mut parts.0);
                self.mark(&mut parts.1);
                self.mark_block(&mut parts.2);
                self.mark_block(&mut parts.3);
            }
            Statement::Return(Some(value)) => self.mark(value),
            Statement::Delete(target) => self.mark_target(target),
            Statement::Return(None) | Statement::Break | Statement::Continue | Statement::Raise => {}
        }
    }

    fn mark_target(&self, target: &mut Target) {
        match target {
            Target::Local(_) => {}
            Target::Attribute(value, _) => self.mark(value),
            Target::Subscript(two) => {
                self.mark(&mut two.0);
                self.mark(&mut two.1);
            }
            Target::Slice(parts) => {
                self.mark(&mut parts.0);
                parts.1.iter_mut().flatten().for_each(|bound| self.mark(bound));
            }
            Target::Starred(inner) => self.mark_target(inner),
            Target::Tuple(targets) => targets.iter_mut().for_each(|target| self.mark_target(target)),
        }
    }

    fn mark_comprehension(&self, comprehension: &mut Comprehension) {
        comprehension.pure = self.comprehension(comprehension);
        self.mark(&mut comprehension.element);
        for clause in &mut comprehension.clauses {
            self.mark_target(&mut clause.target);
            self.mark(&mut clause.iterable);
            clause.conditions.iter_mut().for_each(|condition| self.mark(condition));
        }
    }

    fn mark(&self, expression: &mut Expression) {
        use Expression as E;
        match expression {
            E::Attribute(value, _) | E::Unary(_, value) | E::Starred(value) | E::ViewProcess(value) => self.mark(value),
            E::Assigned(_, value) | E::Announce(value) | E::Tested(_, value) => self.mark(value),
            E::Choose(choice) => {
                choice.pure = self.expression(&choice.options);
                self.mark(&mut choice.options);
            }
            E::Subscript(two) | E::Binary(_, two) | E::Compare(_, two) | E::Send(two) => {
                self.mark(&mut two.0);
                self.mark(&mut two.1);
            }
            E::Sliced(parts) => {
                self.mark(&mut parts.0);
                parts.1.iter_mut().flatten().for_each(|bound| self.mark(bound));
            }
            E::And(items) | E::Or(items) | E::Tuple(items) | E::List(items) | E::Set(items) | E::Joined(items) => {
                items.iter_mut().for_each(|item| self.mark(item));
            }
            E::Lambda(_, items) | E::CallFunction(_, items) | E::Construct(_, items) | E::Spawn(_, items) => {
                items.iter_mut().for_each(|item| self.mark(item));
            }
            E::Chain(parts) => {
                self.mark(&mut parts.0);
                parts.1.iter_mut().for_each(|(_, right)| self.mark(right));
            }
            E::Conditional(parts) => {
                self.mark(&mut parts.0);
                self.mark(&mut parts.1);
                self.mark(&mut parts.2);
            }
            E::Dict(pairs) => {
                for (key, value) in pairs {
                    key.iter_mut().for_each(|key| self.mark(key));
                    self.mark(value);
                }
            }
            E::ListComprehension(inner) | E::SetComprehension(inner) | E::Generator(inner) => {
                self.mark_comprehension(inner);
            }
            E::DictComprehension(parts) => {
                self.mark_comprehension(&mut parts.0);
                self.mark(&mut parts.1);
            }
            E::Formatted(parts) => self.mark(&mut parts.0),
            E::Function(_, bound) => bound.iter_mut().for_each(|bound| self.mark(bound)),
            E::CallValue(parts) => {
                self.mark(&mut parts.0);
                parts.1.iter_mut().for_each(|item| self.mark(item));
            }
            E::CallMethod(call) => {
                self.mark(&mut call.value);
                call.arguments.iter_mut().for_each(|item| self.mark(item));
                let k = &mut call.keywords;
                [&mut k.key, &mut k.reverse, &mut k.only].into_iter().flatten().for_each(|value| self.mark(value));
            }
            E::CallBuiltin(call) => {
                call.pure = self.all(&call.arguments) && self.keywords(call);
                call.arguments.iter_mut().for_each(|item| self.mark(item));
                let k = &mut call.keywords;
                [
                    &mut k.key,
                    &mut k.reverse,
                    &mut k.default,
                    &mut k.start,
                    &mut k.strict,
                    &mut k.repeat,
                    &mut k.initial,
                    &mut k.only,
                ]
                .into_iter()
                .flatten()
                .for_each(|value| self.mark(value));
            }
            E::IsInstance(parts) => self.mark(&mut parts.0),
            E::Replace(parts) => {
                self.mark(&mut parts.0);
                parts.1.iter_mut().for_each(|(_, value)| self.mark(value));
            }
            E::Broadcast(parts) => {
                self.mark(&mut parts.1);
                parts.2.iter_mut().for_each(|value| self.mark(value));
            }
            _ => {}
        }
    }
}
