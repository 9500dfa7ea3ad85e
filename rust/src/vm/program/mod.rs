//! A program as the virtual machine executes it: the nodes of `src/plait/ir/nodes.py`, with names resolved to numbers.
//!
//! In comes JSON, out comes a `Program`. Open `load.rs` first: it makes the program. A program holds no `Rc`, so that all workers share it. What the loader does not know
//! becomes `Expression::Unsupported`, which bails when it is reached.

mod expression;
mod json;
mod load;
mod purity;
mod statement;

use crate::vm::Bail;
use crate::vm::library::{Builtin, Method};
use crate::vm::value::compare::Relation;
use crate::vm::value::{Member, Pid, Traits};
use rustc_hash::FxHashMap as HashMap;

pub use load::load;

pub type Slot = u32;
/// An interned name of an attribute or a method.
pub type Symbol = u32;
pub type Block = Box<[Statement]>;
/// The operators of a chain of comparisons, with their right operands.
pub type Rights = Box<[(Comparison, Expression)]>;
/// New values of fields.
pub type Changes = Box<[(Symbol, Expression)]>;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unary {
    Negative,
    Positive,
    Invert,
    Not,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Modulo,
    Power,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparison {
    Equal,
    NotEqual,
    Ordered(Relation),
    Is,
    IsNot,
    In,
    NotIn,
}

pub enum Expression {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Pid(Pid),
    Enum(Member),
    /// A constant that each machine decodes once.
    Constant(u32),
    Local(Slot),
    Attribute(Box<Expression>, Symbol),
    Subscript(Box<(Expression, Expression)>),
    /// The value, and the bounds of the slice.
    Sliced(Box<(Expression, [Option<Expression>; 3])>),
    Unary(Unary, Box<Expression>),
    Binary(Binary, Box<(Expression, Expression)>),
    And(Box<[Expression]>),
    Or(Box<[Expression]>),
    /// One comparison.
    Compare(Comparison, Box<(Expression, Expression)>),
    Chain(Box<(Expression, Rights)>),
    /// A test with its number: which way it goes is noted (`Memory::branches`).
    Tested(u16, Box<Expression>),
    Conditional(Box<(Expression, Expression, Expression)>),
    Assigned(Slot, Box<Expression>),
    Starred(Box<Expression>),
    Tuple(Box<[Expression]>),
    List(Box<[Expression]>),
    Set(Box<[Expression]>),
    Dict(Box<[(Option<Expression>, Expression)]>),
    ListComprehension(Box<Comprehension>),
    SetComprehension(Box<Comprehension>),
    /// The element is the key, then the value.
    DictComprehension(Box<(Comprehension, Expression)>),
    Generator(Box<Comprehension>),
    Formatted(Box<(Expression, Conversion)>),
    Joined(Box<[Expression]>),
    /// The number of the lambda, and its defaults.
    Lambda(u32, Box<[Expression]>),
    Function(u32, Option<Box<Expression>>),
    Builtin(Builtin),
    /// A method of a built-in type as a function: `str.lower`.
    UnboundMethod(Method),
    CallValue(Box<(Expression, Box<[Expression]>)>),
    CallFunction(u32, Box<[Expression]>),
    CallMethod(Box<MethodCall>),
    CallBuiltin(Box<BuiltinCall>),
    IsInstance(Box<(Expression, Box<[TypeTest]>)>),
    Construct(u32, Box<[Expression]>),
    Replace(Box<(Expression, Changes)>),
    SelfId,
    Send(Box<(Expression, Expression)>),
    Broadcast(Box<(Box<[u16]>, Expression, Option<Expression>)>),
    Announce(Box<Expression>),
    Choose(Box<Choice>),
    Spawn(u32, Box<[Expression]>),
    ViewRole(Box<[u16]>, u16),
    ViewProcess(Box<Expression>),
    ViewMonitor(u16),
    ViewMessages(Box<[u16]>, u16),
    Unsupported(Bail),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Conversion {
    Str,
    Repr,
}

/// `self.choose(options)`.
pub struct Choice {
    pub options: Expression,
    /// Computing the options has no effects.
    pub pure: bool,
}

pub struct Comprehension {
    pub element: Expression,
    pub clauses: Box<[Clause]>,
    /// Nothing that it evaluates has an effect. So the order of a set cannot matter, unless it reaches the result.
    pub pure: bool,
}

pub struct Clause {
    pub target: Target,
    pub iterable: Expression,
    pub conditions: Box<[Expression]>,
}

/// Keyword arguments, by the names that a built-in function or method may have.
#[derive(Default)]
pub struct Keywords {
    /// There is one.
    pub any: bool,
    pub key: Option<Expression>,
    pub reverse: Option<Expression>,
    pub default: Option<Expression>,
    pub start: Option<Expression>,
    pub strict: Option<Expression>,
    pub repeat: Option<Expression>,
    pub initial: Option<Expression>,
    /// The one keyword of `deque`, `popitem`, `move_to_end` or `most_common`.
    pub only: Option<Expression>,
}

pub struct MethodCall {
    pub value: Expression,
    /// For a method of a class of the program.
    pub name: Symbol,
    /// For a method of a built-in type.
    pub method: Option<Method>,
    pub arguments: Box<[Expression]>,
    pub keywords: Keywords,
}

pub struct BuiltinCall {
    pub builtin: Builtin,
    pub arguments: Box<[Expression]>,
    pub keywords: Keywords,
    /// Whether a `key` function, if there is one, has no effects.
    pub pure: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TypeTest {
    Int,
    Bool,
    Float,
    Str,
    Bytes,
    Tuple,
    List,
    Dict,
    Set,
    FrozenSet,
    None,
    Pid,
    Range,
    Deque,
    OrderedDict,
    DefaultDict,
    Counter,
    Fraction,
    Class(u32),
}

pub enum Target {
    Local(Slot),
    Attribute(Expression, Symbol),
    Subscript(Box<(Expression, Expression)>),
    Slice(Box<(Expression, [Option<Expression>; 3])>),
    Starred(Box<Target>),
    Tuple(Box<[Target]>),
}

pub enum Statement {
    Evaluate(Expression),
    AssignLocal(Slot, Expression),
    Assign(Box<[Target]>, Expression),
    /// `a, b = x, y`
    Parallel(Box<[Target]>, Box<[Expression]>),
    Augmented(Box<(Target, Binary, Expression)>),
    If(Box<(Expression, Block, Block)>),
    While(Box<(Expression, Block, Block)>),
    For(Box<(Target, Expression, Block, Block)>),
    Break,
    Continue,
    Return(Option<Expression>),
    Delete(Target),
    Assert(Expression),
    Raise,
}

pub struct Function {
    pub name: Box<str>,
    pub parameters: usize,
    pub slots: usize,
    pub body: Block,
}

/// A function inside a function. Its parameters are slots of the frame around it.
pub struct Lambda {
    pub parameters: Box<[Slot]>,
    pub body: Block,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Enum,
    /// An enum whose members can be combined.
    Flag,
    Tuple,
    /// Derives from `str`, `int` or `tuple`, and is no named tuple.
    Derived,
    Record,
    Message,
    Process,
    Monitor,
    Shared,
}

/// What an attribute of an instance is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Attribute {
    Missing,
    Field(u32),
    /// A function that computes it.
    Property(u32),
    Constant(u32),
}

pub struct Class {
    pub name: Box<str>,
    pub kind: Kind,
    pub fields: Box<[Box<str>]>,
    /// For an enum, the constants that are the values of its members.
    pub values: Box<[Option<u32>]>,
    /// For a flag, its members by name, with their values.
    pub flags: Box<[(Box<str>, u32)]>,
    pub mutable: bool,
    pub traits: Traits,
    /// It defines operators of its own: its instances are left to CPython.
    pub unusual: bool,
    pub bases: Box<[u32]>,
    /// By symbol.
    pub attributes: Box<[Attribute]>,
    /// By symbol: functions.
    pub methods: HashMap<Symbol, u32>,
    /// What the canonical bytes of an instance begin with.
    pub prefix: Box<[u8]>,
}

pub struct Handler {
    pub step: Option<u32>,
    pub guard: Option<u32>,
    pub quorum: Option<u32>,
    /// The guard over a whole set of messages.
    pub accept: Option<u32>,
    /// The step gets a tuple of messages.
    pub several: bool,
}

pub struct Part {
    pub function: u32,
    pub positions: Box<[u16]>,
}

pub struct Property {
    pub function: u32,
    pub every: bool,
    pub parts: Box<[Part]>,
}

pub struct Process {
    pub class: u32,
    pub pid: Pid,
    pub handlers: usize,
}

/// An object whose fields (*cells*) processes share.
pub struct SharedObject {
    pub class: u32,
    pub role: Box<str>,
    pub index: u32,
    /// The number of its first field among the cells.
    pub first: u32,
}

pub struct Program {
    pub functions: Box<[Function]>,
    pub lambdas: Box<[Lambda]>,
    pub classes: Box<[Class]>,
    pub class_numbers: HashMap<Box<str>, u32>,
    /// The names of roles, sorted.
    pub roles: Box<[Box<str>]>,
    pub processes: Box<[Process]>,
    /// The positions of processes by their ids.
    pub positions: HashMap<Pid, u16>,
    pub first_spare: usize,
    pub handlers: Box<[Box<[Handler]>]>,
    pub monitors: Box<[(u32, Option<u32>)]>,
    pub shared: Box<[SharedObject]>,
    /// How many cells there are. In steps and guards, they follow the fields of the process.
    pub cells: usize,
    pub properties: Box<[Option<Property>]>,
    /// A state may hold a `defaultdict`, so that a subscript may change it.
    pub inserts: bool,
    /// Canonical bytes.
    pub constants: Box<[Box<[u8]>]>,
    /// Where the fields of each process, of each monitor, and of each shared object begin if all are in one row; then the
    /// end.
    pub field_offsets: Box<[u32]>,
    pub symbols: Symbols,
}

/// Names with a meaning of their own.
pub struct Symbols {
    pub id: Symbol,
    pub status: Symbol,
    pub crashed: Symbol,
    pub inbox: Symbol,
    pub sender: Symbol,
    pub name: Symbol,
    pub value: Symbol,
    pub role: Symbol,
    pub index: Symbol,
    pub maxlen: Symbol,
    pub numerator: Symbol,
    pub denominator: Symbol,
}

impl Program {
    /// The number of the shared object with this id.
    pub fn shared_object(&self, role: &[u8], index: u32) -> Option<u16> {
        let found = self.shared.iter().position(|shared| shared.index == index && shared.role.as_bytes() == role);
        found.map(|number| number as u16)
    }

    /// All flags of a class together.
    pub fn all_flags(&self, class: u32) -> u32 {
        self.classes[class as usize].flags.iter().fold(0, |all, (_, value)| all | value)
    }

    pub fn class_of_process(&self, position: u16) -> &Class {
        &self.classes[self.processes[position as usize].class as usize]
    }
}
