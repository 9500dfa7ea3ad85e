//! Built-in functions, functions of the standard library, and methods of built-in types. In come values, out come values, or
//! the machine bails.
//!
//! Open `builtins.rs` first: it calls the functions. `reduce.rs` has those that consume an iterable (`sum`, `min`, `sorted`,
//! …), `combinatorics.rs` those of `itertools`, `copies.rs` those of `copy`. The other files have the methods of a type each.

mod builtins;
mod combinatorics;
mod copies;
mod deques;
mod dicts;
mod lists;
mod methods;
mod reduce;
mod sets;
mod strings;

pub use builtins::is_lazy;

/// An enum whose members have the names that Python gives them.
macro_rules! names {
    ($(#[$about:meta])* $kind:ident { $($member:ident = $name:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(align(8))]
        pub enum $kind {
            $($member,)*
        }

        impl $kind {
            pub fn from_name(name: &str) -> Option<$kind> {
                match name {
                    $($name => Some($kind::$member),)*
                    _ => None,
                }
            }
        }
    };
}

names! {
    /// A function that the machine knows.
    Builtin {
        Abs = "abs",
        All = "all",
        Any = "any",
        Bool = "bool",
        Chr = "chr",
        Dict = "dict",
        Divmod = "divmod",
        Enumerate = "enumerate",
        Filter = "filter",
        Float = "float",
        FrozenSet = "frozenset",
        Int = "int",
        Iter = "iter",
        Len = "len",
        List = "list",
        Map = "map",
        Max = "max",
        Min = "min",
        Next = "next",
        Ord = "ord",
        Pow = "pow",
        Range = "range",
        Repr = "repr",
        Reversed = "reversed",
        Round = "round",
        Set = "set",
        Sorted = "sorted",
        Str = "str",
        Sum = "sum",
        Tuple = "tuple",
        Zip = "zip",
        FromKeys = "dict.fromkeys",
        Deque = "collections.deque",
        OrderedDict = "collections.OrderedDict",
        DefaultDict = "collections.defaultdict",
        Counter = "collections.Counter",
        Fraction = "fractions.Fraction",
        Copy = "copy.copy",
        DeepCopy = "copy.deepcopy",
        Reduce = "functools.reduce",
        Accumulate = "itertools.accumulate",
        Chain = "itertools.chain",
        ChainFromIterable = "itertools.chain.from_iterable",
        Combinations = "itertools.combinations",
        CombinationsWithReplacement = "itertools.combinations_with_replacement",
        DropWhile = "itertools.dropwhile",
        FilterFalse = "itertools.filterfalse",
        Islice = "itertools.islice",
        Pairwise = "itertools.pairwise",
        Permutations = "itertools.permutations",
        Product = "itertools.product",
        Repeat = "itertools.repeat",
        Starmap = "itertools.starmap",
        TakeWhile = "itertools.takewhile",
        Ceil = "math.ceil",
        Floor = "math.floor",
        Gcd = "math.gcd",
        Prod = "math.prod",
        Isqrt = "math.isqrt",
    }
}

names! {
    /// A method of a built-in type.
    Method {
        Add = "add",
        Append = "append",
        AppendLeft = "appendleft",
        Clear = "clear",
        Copy = "copy",
        Count = "count",
        Difference = "difference",
        DifferenceUpdate = "difference_update",
        Discard = "discard",
        EndsWith = "endswith",
        Extend = "extend",
        ExtendLeft = "extendleft",
        Find = "find",
        Format = "format",
        Get = "get",
        Index = "index",
        Insert = "insert",
        Intersection = "intersection",
        IntersectionUpdate = "intersection_update",
        IsAlpha = "isalpha",
        IsDecimal = "isdecimal",
        IsDigit = "isdigit",
        IsDisjoint = "isdisjoint",
        IsSubset = "issubset",
        IsSuperset = "issuperset",
        Items = "items",
        Join = "join",
        Keys = "keys",
        Lower = "lower",
        LStrip = "lstrip",
        MostCommon = "most_common",
        MoveToEnd = "move_to_end",
        Partition = "partition",
        Pop = "pop",
        PopItem = "popitem",
        PopLeft = "popleft",
        Remove = "remove",
        RemovePrefix = "removeprefix",
        RemoveSuffix = "removesuffix",
        Replace = "replace",
        Reverse = "reverse",
        RFind = "rfind",
        Rotate = "rotate",
        RStrip = "rstrip",
        SetDefault = "setdefault",
        Sort = "sort",
        Split = "split",
        StartsWith = "startswith",
        Strip = "strip",
        Subtract = "subtract",
        SymmetricDifference = "symmetric_difference",
        SymmetricDifferenceUpdate = "symmetric_difference_update",
        Total = "total",
        Union = "union",
        Update = "update",
        Upper = "upper",
        Values = "values",
    }
}

impl Method {
    /// Whether it changes the value that it belongs to, or may.
    pub fn changes(self) -> bool {
        use Method as M;
        matches!(
            self,
            M::Add
                | M::Append
                | M::AppendLeft
                | M::Clear
                | M::DifferenceUpdate
                | M::Discard
                | M::Extend
                | M::ExtendLeft
                | M::Insert
                | M::IntersectionUpdate
                | M::MoveToEnd
                | M::Pop
                | M::PopItem
                | M::PopLeft
                | M::Remove
                | M::Reverse
                | M::Rotate
                | M::SetDefault
                | M::Sort
                | M::Subtract
                | M::SymmetricDifferenceUpdate
                | M::Update
        )
    }
}
