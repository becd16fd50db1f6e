//! As much of MongoDB's wire protocol as it takes to tell a server what to do: one command, one answer (`OP_MSG`).

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

/// The code of the one message there is.
const MESSAGE: i32 = 2013;

/// No answer that we ask for is longer.
const LONGEST: usize = 48 << 20;

/// A value of a document.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// A whole number.
    Number(i64),
    /// A number with a fraction.
    Fraction(f64),
    /// A text.
    Text(String),
    /// Yes or no.
    Truth(bool),
    /// Fields, in order.
    Fields(Vec<(String, Value)>),
    /// Values, in order.
    List(Vec<Value>),
    /// Something that nobody here asks for.
    Other,
}

impl Value {
    /// The value of a field.
    pub fn get(&self, field: &str) -> Option<&Self> {
        match self {
            Self::Fields(fields) => fields.iter().find(|(name, _)| name == field).map(|(_, value)| value),
            _ => None,
        }
    }

    /// The number it is, whole or not.
    pub fn number(&self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Fraction(number) => Some(*number as i64),
            _ => None,
        }
    }

    /// The text it is.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Whether it is a yes.
    pub fn is_true(&self) -> bool {
        *self == Self::Truth(true)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Self::Truth(truth)
    }
}

/// A document of these fields.
pub fn fields<const N: usize>(fields: [(&str, Value); N]) -> Value {
    Value::Fields(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// Sends one command and returns the answer, which may say that it failed.
pub(super) fn ask(address: SocketAddr, command: &Value, patience: Duration) -> io::Result<Value> {
    let mut body = vec![0, 0, 0, 0, 0];
    write_document(&mut body, command);
    let mut stream = TcpStream::connect_timeout(&address, patience)?;
    stream.set_read_timeout(Some(patience))?;
    let length = i32::try_from(16 + body.len()).map_err(io::Error::other)?;
    let head: Vec<u8> = [length, 1, 0, MESSAGE].into_iter().flat_map(i32::to_le_bytes).collect();
    stream.write_all(&[head, body].concat())?;
    let mut head = [0; 16];
    stream.read_exact(&mut head)?;
    let length =
        usize::try_from(i32::from_le_bytes([head[0], head[1], head[2], head[3]])).unwrap_or_default();
    let mut answer = vec![0; length.clamp(21, LONGEST) - 16];
    stream.read_exact(&mut answer)?;
    Reader(&answer[5..]).document(false).ok_or_else(|| io::Error::other("the answer is no document"))
}

fn write_document(out: &mut Vec<u8>, document: &Value) {
    let start = out.len();
    out.extend([0; 4]);
    match document {
        Value::Fields(fields) => fields.iter().for_each(|(name, value)| write_field(out, name, value)),
        Value::List(values) => {
            values.iter().enumerate().for_each(|(index, value)| write_field(out, &index.to_string(), value));
        }
        _ => {}
    }
    out.push(0);
    let length = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

fn write_field(out: &mut Vec<u8>, name: &str, value: &Value) {
    let kind = match value {
        Value::Number(_) => 0x12,
        Value::Fraction(_) => 0x01,
        Value::Text(_) => 0x02,
        Value::Truth(_) => 0x08,
        Value::Fields(_) => 0x03,
        Value::List(_) => 0x04,
        Value::Other => 0x0a,
    };
    out.push(kind);
    out.extend(name.bytes().chain([0]));
    match value {
        Value::Number(number) => out.extend(number.to_le_bytes()),
        Value::Fraction(number) => out.extend(number.to_le_bytes()),
        Value::Text(text) => {
            out.extend((text.len() as u32 + 1).to_le_bytes());
            out.extend(text.bytes().chain([0]));
        }
        Value::Truth(truth) => out.push(u8::from(*truth)),
        Value::Fields(_) | Value::List(_) => write_document(out, value),
        Value::Other => {}
    }
}

/// What is left to read.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn document(&mut self, is_list: bool) -> Option<Value> {
        self.take(4)?;
        let mut fields = Vec::new();
        loop {
            let kind = self.take(1)?[0];
            if kind == 0 {
                break;
            }
            let end = self.0.iter().position(|byte| *byte == 0)?;
            let name = String::from_utf8_lossy(self.take(end + 1)?).trim_end_matches('\0').to_owned();
            fields.push((name, self.value(kind)?));
        }
        let list = || fields.iter().map(|(_, value)| value.clone()).collect();
        Some(if is_list { Value::List(list()) } else { Value::Fields(fields) })
    }

    fn value(&mut self, kind: u8) -> Option<Value> {
        Some(match kind {
            0x01 => Value::Fraction(f64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            0x02 => {
                let length = self.length()?;
                Value::Text(String::from_utf8_lossy(self.take(length)?).trim_end_matches('\0').to_owned())
            }
            0x03 => self.document(false)?,
            0x04 => self.document(true)?,
            0x08 => Value::Truth(self.take(1)?[0] == 1),
            0x10 => Value::Number(i32::from_le_bytes(self.take(4)?.try_into().ok()?).into()),
            0x12 => Value::Number(i64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            _ => {
                let length = match kind {
                    0x05 => self.length()? + 1,
                    0x07 => 12,
                    0x09 | 0x11 => 8,
                    0x13 => 16,
                    0x0a | 0x7f | 0xff => 0,
                    _ => return None,
                };
                self.take(length)?;
                Value::Other
            }
        })
    }

    fn length(&mut self) -> Option<usize> {
        usize::try_from(i32::from_le_bytes(self.take(4)?.try_into().ok()?)).ok()
    }

    fn take(&mut self, count: usize) -> Option<&[u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_read_back() {
        let inner = fields([("text", "锁".into()), ("yes", true.into())]);
        let document = fields([("number", 7.into()), ("list", Value::List(vec![inner, (-1).into()]))]);
        let mut bytes = Vec::new();
        write_document(&mut bytes, &document);
        assert_eq!(Reader(&bytes).document(false), Some(document));
        for end in 0..bytes.len() {
            assert_eq!(Reader(&bytes[..end]).document(false), None, "cut after {end}");
        }
    }
}
