//! Events and memory objects of a sanitized trace as text (Saissi 2019, Listings 6 and 7). A trace has millions of lines.

use std::fmt::Write;

use rustc_hash::FxHashMap;

use super::format::{self, ALLOCA, ENTER, LANDING, LOAD, RETURN, VALUE};
use super::recording::Recording;
use super::sanitize::{Event, Kind, NOBODY, OBJECT, Sanitized, THREAD, UNKNOWN};

/// Globals with this number or a larger one come from outside of the program (`GIVEN` of the recorder).
const GIVEN: u32 = 0x4000_0000;
const ENVIRONMENT: u32 = 0x10_0000;

/// How the values of a site are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shown {
    #[default]
    Plain,
    /// The site has no value.
    Nothing,
    /// In hexadecimal.
    Address,
    Float,
    Double,
}

impl Shown {
    /// The class of values in the table of a program.
    pub fn of(class: &str) -> Self {
        match class {
            "none" => Self::Nothing,
            "pointer" | "opaque" => Self::Address,
            "float" => Self::Float,
            "double" => Self::Double,
            _ => Self::Plain,
        }
    }
}

/// An operand of a result.
#[derive(Clone, Debug)]
pub enum Operand {
    Site(u32),
    Text(String),
}

/// The texts of a site.
#[derive(Clone, Debug, Default)]
pub struct Label {
    pub op: String,
    pub function: String,
    pub shown: Shown,
    pub name: String,
    pub index: u32,
    pub shape: Vec<Operand>,
    pub place: String,
}

/// The texts of a program: of its sites (the first one is not used), globals and libraries.
#[derive(Default)]
pub struct Labels {
    pub sites: Vec<Label>,
    pub globals: Vec<String>,
    pub modules: Vec<String>,
}

/// The words of events, as text.
pub struct Text<'a> {
    pub labels: &'a Labels,
    pub sanitized: &'a Sanitized,
}

impl Text<'_> {
    pub fn object(&self, out: &mut String, number: u32) {
        let object = &self.sanitized.objects[number as usize];
        let thread = self.sanitized.threads.get(object.owner as usize).map_or("", |t| t.name.as_str());
        let site = self.labels.sites.get(object.site as usize).filter(|_| object.site > 0);
        // Writing to a string cannot fail.
        let _ = match object.kind {
            Kind::Global if object.site >= GIVEN => given(out, object.site - GIVEN),
            Kind::Global | Kind::Local => {
                let name = self.labels.globals.get(object.site as usize).map_or("", String::as_str);
                if object.kind == Kind::Local {
                    let _ = write!(out, "{thread}:");
                }
                if name.is_empty() { write!(out, "global{}", object.site) } else { write!(out, "{name}") }
            }
            Kind::Library => write!(out, "{}", self.labels.modules.get(object.site as usize).map_or("", |m| m)),
            Kind::Default => write!(out, "d{number}"),
            Kind::Heap => match site {
                Some(s) if s.name.is_empty() => write!(out, "{thread}:heap@{}#{}", s.place, object.nth),
                Some(s) => write!(out, "{thread}:{}@{}#{}", s.name, s.place, object.nth),
                None => write!(out, "{thread}:heap#{}", object.nth),
            },
            Kind::Stack => match site {
                Some(s) if s.name.is_empty() => write!(out, "{thread}:stack@{}#{}", s.place, object.nth),
                Some(s) => {
                    write!(out, "{thread}:{}#{}", s.name.strip_suffix(".addr").unwrap_or(&s.name), object.nth)
                }
                None => write!(out, "{thread}:stack#{}", object.nth),
            },
        };
    }

    /// A value of an event.
    pub fn word(&self, out: &mut String, tag: u8, value: u64, shown: Shown) {
        let _ = match (tag, shown) {
            (OBJECT, _) => {
                self.object(out, (value >> 32) as u32);
                if value as u32 != 0 { write!(out, "+{}", value as u32) } else { Ok(()) }
            }
            (THREAD, _) => write!(out, "{}", self.sanitized.threads[value as usize].name),
            (UNKNOWN, _) => write!(out, "d{}", value >> 32),
            (_, Shown::Double) => real(out, f64::from_bits(value)),
            (_, Shown::Float) => real(out, f64::from(f32::from_bits(value as u32))),
            (_, Shown::Address) if value != 0 => write!(out, "{value:#x}"),
            _ => write!(out, "{value}"),
        };
    }

    /// An event: its kind, its value, its operand.
    pub fn event(&self, out: &mut String, event: &Event) {
        let site = self.labels.sites.get(event.site as usize).filter(|_| event.site > 0);
        let shown = site.map_or(Shown::Plain, |s| s.shown);
        let name = site.map_or("", |s| s.name.as_str());
        let a = |out: &mut String, shown| self.word(out, event.tag_a, event.a, shown);
        match event.kind {
            format::LOAD | format::STORE => {
                out.push_str(if event.kind == format::LOAD { "load " } else { "store " });
                self.word(out, event.tag_b, event.b, shown);
                out.push(' ');
                a(out, Shown::Address);
            }
            format::ALLOCA => {
                out.push_str("alloca ");
                a(out, Shown::Plain);
                let _ = write!(out, " {}", event.b);
            }
            format::ENTER | format::LANDING => {
                out.push_str(if event.kind == format::ENTER { "enter " } else { "landingpad " });
                out.push_str(name);
                out.truncate(out.trim_end().len());
            }
            format::CALL => {
                out.push_str("call ");
                if name.is_empty() { a(out, Shown::Address) } else { out.push_str(name) }
            }
            format::ARGUMENT => {
                let _ = write!(out, "argument {}: ", site.map_or(0, |s| s.index));
                a(out, shown);
            }
            format::RANGE | format::COPY | format::COPY_FROM => {
                out.push_str(match event.kind {
                    format::COPY => "copy to ",
                    format::COPY_FROM => "copy from ",
                    _ if event.writes => "write ",
                    _ => "read ",
                });
                a(out, Shown::Address);
                let _ = write!(out, ", {} bytes", event.b);
            }
            format::RETURN if shown == Shown::Nothing => out.push_str("return"),
            format::RETURN => {
                out.push_str("return ");
                a(out, shown);
            }
            _ => {
                match site {
                    Some(s) if s.op == "call" => {
                        let _ = write!(out, "result of {}: ", if name.is_empty() { "call" } else { name });
                    }
                    Some(s) => {
                        let _ = write!(out, "{} ", s.op);
                    }
                    None => out.push_str("? "),
                }
                a(out, shown);
            }
        }
    }

    /// A memory object, as in Listing 7.
    pub fn definition(&self, out: &mut String, number: u32) {
        let o = &self.sanitized.objects[number as usize];
        let _ = write!(out, "o{number} := {{name=");
        self.object(out, number);
        let thread = if o.owner == NOBODY { "_" } else { &self.sanitized.threads[o.owner as usize].name };
        let _ =
            writeln!(out, ", ba={:x}, t={thread}, l_idx={}, s={}, v=[{},{}]}}", o.base, o.local, o.size, o.from, o.to);
    }
}

fn given(out: &mut String, number: u32) -> std::fmt::Result {
    match ["argv", "envp", "stdin", "stdout"].get(number as usize) {
        Some(name) => write!(out, "{name}"),
        None if number == ENVIRONMENT => write!(out, "environment"),
        None => write!(out, "argv[{}]", number - 4),
    }
}

/// A number as Python shows it: the shortest digits that give the same number, and an exponent if it is far from 1.
fn real(out: &mut String, value: f64) -> std::fmt::Result {
    if !value.is_finite() {
        return write!(
            out,
            "{}",
            if value.is_nan() {
                "nan"
            } else if value > 0.0 {
                "inf"
            } else {
                "-inf"
            }
        );
    }
    let size = value.abs();
    if size == 0.0 || (1e-4..1e16).contains(&size) {
        return write!(out, "{value:?}");
    }
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    write!(out, "{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// The results of a frame that are not left yet: a tag and a value, by site.
struct Frame {
    /// A site of its function.
    site: u32,
    results: FxHashMap<u32, (u8, u64)>,
}

/// A position in the order of the whole run. Results of earlier events are kept, to show them as operands.
pub struct Position {
    run: usize,
    /// Events of this run that were shown.
    inside: usize,
    /// Events of each thread before this run.
    reached: Vec<usize>,
    /// Events of all threads.
    pub shown: u64,
    frames: Vec<Vec<Frame>>,
}

impl Position {
    pub fn new(sanitized: &Sanitized) -> Self {
        let frames = sanitized.threads.iter().map(|_| Vec::new()).collect();
        Self { run: 0, inside: 0, reached: vec![0; sanitized.threads.len()], shown: 0, frames }
    }

    /// The next events, one per line: number, thread, event, operands, place. False at the end. Of the other threads, only
    /// the results are kept if one thread is given.
    pub fn lines(&mut self, recording: &Recording, text: &Text<'_>, only: Option<u32>, count: usize) -> (String, bool) {
        let (mut out, mut lines) = (String::new(), 0);
        while let (Some(run), Some(&length)) = (recording.runs.get(self.run), text.sanitized.lengths.get(self.run)) {
            let thread = &text.sanitized.threads[run.stream as usize];
            let from = self.reached[run.stream as usize];
            while self.inside < length as usize {
                if lines == count {
                    return (out, true);
                }
                let event = &thread.events[from + self.inside];
                self.inside += 1;
                let number = self.shown;
                self.shown += 1;
                if only.is_some_and(|t| t != run.stream) {
                    continue;
                }
                lines += 1;
                let _ = write!(out, "{number} {} ", thread.name);
                text.event(&mut out, event);
                operands(&mut self.frames[run.stream as usize], &mut out, text, event);
                match text.labels.sites.get(event.site as usize).filter(|_| event.site > 0) {
                    Some(site) if !site.place.is_empty() => drop(writeln!(out, "  ({})", site.place)),
                    _ => out.push('\n'),
                }
            }
            self.reached[run.stream as usize] += length as usize;
            (self.run, self.inside) = (self.run + 1, 0);
        }
        (out, false)
    }
}

/// Show the operands of a result, and keep the result itself.
fn operands(frames: &mut Vec<Frame>, out: &mut String, text: &Text<'_>, event: &Event) {
    let Some(site) = text.labels.sites.get(event.site as usize).filter(|_| event.site > 0) else { return };
    if event.kind == ENTER {
        frames.push(Frame { site: event.site, results: FxHashMap::default() });
    }
    let function = |number: u32| text.labels.sites.get(number as usize).map_or("", |s| s.function.as_str());
    while event.kind == LANDING && frames.len() > 1 && frames.last().is_some_and(|f| function(f.site) != site.function)
    {
        frames.pop();
    }
    if event.kind == VALUE && !site.shape.is_empty() {
        for (i, operand) in site.shape.iter().enumerate() {
            out.push_str(if i == 0 { " <- " } else { ", " });
            match operand {
                Operand::Text(name) => out.push_str(name),
                Operand::Site(number) => match frames.last().and_then(|f| f.results.get(number)) {
                    Some(&(tag, value)) => {
                        let shown = text.labels.sites.get(*number as usize).map_or(Shown::Plain, |s| s.shown);
                        text.word(out, tag, value, shown);
                    }
                    None => out.push('?'),
                },
            }
        }
    }
    if matches!(event.kind, VALUE | LOAD | ALLOCA)
        && let Some(frame) = frames.last_mut()
    {
        let result = if event.kind == LOAD { (event.tag_b, event.b) } else { (event.tag_a, event.a) };
        frame.results.insert(event.site, result);
    }
    if event.kind == RETURN {
        frames.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::real;

    #[test]
    fn numbers_are_shown_as_python_shows_them() {
        let shown = |value: f64| {
            let mut out = String::new();
            real(&mut out, value).unwrap();
            out
        };
        let texts =
            [1.0, -0.0, 0.1, 1e16, 1.5e-5, 1e22, 123456789012345680.0, 5e-324, f64::NAN, f64::NEG_INFINITY, 0.0001];
        let expected = [
            "1.0",
            "-0.0",
            "0.1",
            "1e+16",
            "1.5e-05",
            "1e+22",
            "1.2345678901234568e+17",
            "5e-324",
            "nan",
            "-inf",
            "0.0001",
        ];
        assert_eq!(texts.map(shown), expected);
    }
}
