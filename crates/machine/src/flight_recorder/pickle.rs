//! What plain data does a pickle hold? Dictionaries, lists, tuples, strings and numbers; nothing is ever called, and a
//! pickle of anything else is refused.

use serde_json::{Map, Number, Value};

/// A pickle that is not plain data, or damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum PickleError {
    #[error("ends in the middle")]
    Cut,
    #[error("holds more than plain data")]
    NotPlain,
    #[error("is nested too deeply or refers to itself")]
    TooDeep,
}

/// Deeper than any dump.
const MOST_DEPTH: usize = 32;
/// Shared parts count each time: a small pickle must not become a huge value.
const MOST_VALUES: usize = 20_000_000;

type Id = usize;

enum Node {
    Plain(Value),
    List(Vec<Id>),
    Dict(Vec<(Id, Id)>),
}

/// The stack machine of a pickle, over an arena: containers are filled after they were stored.
#[derive(Default)]
struct Machine {
    nodes: Vec<Node>,
    stack: Vec<Id>,
    marks: Vec<usize>,
    memo: std::collections::BTreeMap<u32, Id>,
}

/// The value of a pickle.
pub(super) fn value(bytes: &[u8]) -> Result<Value, PickleError> {
    let mut rest = bytes;
    let mut machine = Machine::default();
    loop {
        let code = take(&mut rest, 1)?[0];
        if code == b'.' {
            break;
        }
        machine.run(code, &mut rest)?;
    }
    let top = machine.stack.pop().ok_or(PickleError::Cut)?;
    let mut left = MOST_VALUES;
    machine.built(top, 0, &mut left)
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Result<&'a [u8], PickleError> {
    let (taken, after) = rest.split_at_checked(count).ok_or(PickleError::Cut)?;
    *rest = after;
    Ok(taken)
}

/// An unsigned number in little-endian bytes.
fn unsigned(rest: &mut &[u8], count: usize) -> Result<u64, PickleError> {
    Ok(take(rest, count)?.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
}

impl Machine {
    fn run(&mut self, code: u8, rest: &mut &[u8]) -> Result<(), PickleError> {
        match code {
            0x80 => drop(take(rest, 1)?),
            0x95 => drop(take(rest, 8)?),
            b'N' => self.push(Value::Null),
            0x88 | 0x89 => self.push(Value::Bool(code == 0x88)),
            b'K' | b'M' => {
                let number = unsigned(rest, if code == b'K' { 1 } else { 2 })?;
                self.push(number.into());
            }
            b'J' => {
                let number = unsigned(rest, 4)? as u32 as i32;
                self.push(number.into());
            }
            0x8a => self.long(rest)?,
            b'G' => {
                let number = f64::from_bits(unsigned(rest, 8)?.swap_bytes());
                self.push(Number::from_f64(number).map_or(Value::Null, Value::Number));
            }
            b'X' | 0x8c | 0x8d => self.text(code, rest)?,
            b'}' | b']' | b')' => {
                self.push_node(if code == b'}' { Node::Dict(Vec::new()) } else { Node::List(Vec::new()) })
            }
            b'(' => self.marks.push(self.stack.len()),
            b't' | b'l' | b'd' | b'u' | b'e' | b's' | b'a' | 0x85..=0x87 => self.collect(code)?,
            b'q' | b'r' => {
                let at = unsigned(rest, if code == b'q' { 1 } else { 4 })? as u32;
                self.memo.insert(at, *self.stack.last().ok_or(PickleError::Cut)?);
            }
            0x94 => {
                let at = self.memo.len() as u32;
                self.memo.insert(at, *self.stack.last().ok_or(PickleError::Cut)?);
            }
            b'h' | b'j' => {
                let at = unsigned(rest, if code == b'h' { 1 } else { 4 })? as u32;
                self.stack.push(*self.memo.get(&at).ok_or(PickleError::Cut)?);
            }
            _ => return Err(PickleError::NotPlain),
        }
        Ok(())
    }

    fn push(&mut self, value: Value) {
        self.push_node(Node::Plain(value));
    }

    fn push_node(&mut self, node: Node) {
        self.stack.push(self.nodes.len());
        self.nodes.push(node);
    }

    /// An integer of any length; more than 64 bits are not in a dump.
    fn long(&mut self, rest: &mut &[u8]) -> Result<(), PickleError> {
        let count = unsigned(rest, 1)? as usize;
        let bytes = take(rest, count)?;
        let is_negative = bytes.last().is_some_and(|byte| *byte >= 0x80);
        let fill = if is_negative { 0xff } else { 0 };
        if bytes.iter().skip(8).any(|byte| *byte != fill) {
            return Err(PickleError::NotPlain);
        }
        let mut all = [fill; 8];
        for (to, from) in all.iter_mut().zip(bytes) {
            *to = *from;
        }
        self.push(i64::from_le_bytes(all).into());
        Ok(())
    }

    fn text(&mut self, code: u8, rest: &mut &[u8]) -> Result<(), PickleError> {
        let width = match code {
            0x8c => 1,
            b'X' => 4,
            _ => 8,
        };
        let count = usize::try_from(unsigned(rest, width)?).map_err(|_| PickleError::Cut)?;
        let text = String::from_utf8_lossy(take(rest, count)?).into_owned();
        self.push(Value::String(text));
        Ok(())
    }

    /// Everything since the last mark.
    fn since_mark(&mut self) -> Result<Vec<Id>, PickleError> {
        let mark = self.marks.pop().filter(|&mark| mark <= self.stack.len()).ok_or(PickleError::Cut)?;
        Ok(self.stack.split_off(mark))
    }

    fn last(&mut self, count: usize) -> Result<Vec<Id>, PickleError> {
        let at = self.stack.len().checked_sub(count).ok_or(PickleError::Cut)?;
        Ok(self.stack.split_off(at))
    }

    fn collect(&mut self, code: u8) -> Result<(), PickleError> {
        let items = match code {
            b's' => self.last(2)?,
            b'a' => self.last(1)?,
            0x85..=0x87 => self.last(usize::from(code - 0x84))?,
            _ => self.since_mark()?,
        };
        let pairs = || items.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect::<Vec<_>>();
        match code {
            b'u' | b's' => {
                let pairs = pairs();
                let Some(Node::Dict(dict)) = self.top() else { return Err(PickleError::NotPlain) };
                dict.extend(pairs);
            }
            b'e' | b'a' => {
                let Some(Node::List(list)) = self.top() else { return Err(PickleError::NotPlain) };
                list.extend(items);
            }
            b'd' => {
                let pairs = pairs();
                self.push_node(Node::Dict(pairs));
            }
            _ => self.push_node(Node::List(items)),
        }
        Ok(())
    }

    fn top(&mut self) -> Option<&mut Node> {
        let top = *self.stack.last()?;
        self.nodes.get_mut(top)
    }

    /// The value of a node, to a bounded depth.
    fn built(&self, id: Id, depth: usize, left: &mut usize) -> Result<Value, PickleError> {
        *left = left.checked_sub(1).filter(|_| depth < MOST_DEPTH).ok_or(PickleError::TooDeep)?;
        Ok(match &self.nodes[id] {
            Node::Plain(value) => value.clone(),
            Node::List(items) => {
                let items: Result<Vec<Value>, PickleError> =
                    items.iter().map(|&item| self.built(item, depth + 1, left)).collect();
                Value::Array(items?)
            }
            Node::Dict(pairs) => {
                let mut map = Map::new();
                for &(key, value) in pairs {
                    let key = match self.built(key, depth + 1, left)? {
                        Value::String(text) => text,
                        other => other.to_string(),
                    };
                    map.insert(key, self.built(value, depth + 1, left)?);
                }
                Value::Object(map)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Written by Python: `pickle.dumps({"a": [1, -2, 2**40, None, True], "b": ("x", 1.5), "c": shared, "d": shared}, 2)`
    /// with `shared = [300]`.
    const PROTOCOL_2: &[u8] = b"\x80\x02}q\x00(X\x01\x00\x00\x00aq\x01]q\x02(K\x01J\xfe\xff\xff\xff\x8a\x06\x00\x00\x00\x00\x00\x01N\x88eX\x01\x00\x00\x00bq\x03X\x01\x00\x00\x00xq\x04G?\xf8\x00\x00\x00\x00\x00\x00\x86q\x05X\x01\x00\x00\x00cq\x06]q\x07M,\x01aX\x01\x00\x00\x00dq\x08h\x07u.";

    #[test]
    fn plain_data_is_read_with_shared_parts() {
        let expected =
            json!({"a": [1, -2, 1_099_511_627_776i64, null, true], "b": ["x", 1.5], "c": [300], "d": [300]});
        assert_eq!(value(PROTOCOL_2), Ok(expected));
    }

    #[test]
    fn calls_damage_and_cycles_are_refused() {
        // os.system("true")
        assert_eq!(value(b"cos\nsystem\n(S'true'\ntR."), Err(PickleError::NotPlain));
        for at in 0..PROTOCOL_2.len() {
            assert!(value(&PROTOCOL_2[..at]).is_err(), "{at}");
        }
        // A list that holds itself.
        assert_eq!(value(b"\x80\x02]q\x00h\x00a."), Err(PickleError::TooDeep));
    }
}
