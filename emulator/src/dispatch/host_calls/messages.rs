//! Messages of a lane to the host: several packets of up to seven words each.

use std::collections::HashMap;

use super::{WORDS, printf};
use crate::machine::{Output, Stream};

/// A packet's first word: whether the message begins and ends with it, how many words it has (3 bits), and the message's
/// number.
const BEGINS: u64 = 1;
const ENDS: u64 = 2;
const LENGTH_BIT: u32 = 5;
const NUMBER_BIT: u32 = 8;

/// Words of all messages that have begun and not ended, at most.
const MOST_WORDS: usize = 1 << 23;

/// Messages that have begun and not ended.
#[derive(Default)]
pub(super) struct Messages {
    open: HashMap<u64, Vec<u64>>,
    words: usize,
    next: u64,
}

impl Messages {
    /// Takes a packet's words of one lane; prints what is complete. Gives the word that answers it: the message's number in
    /// the same form, or what `printf` returns.
    pub fn take(&mut self, packet: &[u64; WORDS], output: &Output) -> Result<u64, String> {
        let first = packet[0];
        let length = (first >> LENGTH_BIT & 7) as usize;
        let number = match first & BEGINS {
            0 => first >> NUMBER_BIT,
            _ => {
                self.next = (self.next + 1) & (u64::MAX >> NUMBER_BIT);
                self.open.insert(self.next, Vec::new());
                self.next
            }
        };
        let message = self.open.get_mut(&number).ok_or("it goes on with a message that has not begun")?;
        self.words += length;
        if self.words > MOST_WORDS {
            return Err("its messages have no end".into());
        }
        message.extend_from_slice(&packet[1..1 + length]);
        if first & ENDS == 0 {
            return Ok(first & !(BEGINS | u64::MAX << NUMBER_BIT) | number << NUMBER_BIT);
        }
        let message = self.open.remove(&number).unwrap_or_default();
        self.words -= message.len();
        Ok(print(&message, output).map_or(u64::MAX, |bytes| bytes as u64))
    }
}

/// Prints a message, whose first word says where; gives the number of bytes.
fn print(message: &[u64], output: &Output) -> Option<usize> {
    let (&to, message) = message.split_first()?;
    let stream = match to {
        0 => Stream::Stdout,
        1 => Stream::Stderr,
        _ => return None,
    };
    let text = printf::format(message)?;
    output.write(stream, &text);
    Some(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    type Written = Arc<Mutex<Vec<(Stream, Vec<u8>)>>>;

    /// An output, and what has been written to it.
    fn output() -> (Output, Written) {
        let written = Written::default();
        let to = written.clone();
        (Output::new(move |stream, text| to.lock().unwrap().push((stream, text.to_vec()))), written)
    }

    fn packet(flags: u64, number: u64, words: &[u64]) -> [u64; WORDS] {
        let mut packet = [0xdead; WORDS];
        packet[0] = flags | (words.len() as u64) << LENGTH_BIT | number << NUMBER_BIT;
        packet[1..=words.len()].copy_from_slice(words);
        packet
    }

    fn text(text: &str) -> u64 {
        let mut bytes = [0; 8];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        u64::from_le_bytes(bytes)
    }

    #[test]
    fn messages_of_several_packets_take_turns() {
        let (output, written) = output();
        let mut messages = Messages::default();
        let first = messages.take(&packet(BEGINS, 0, &[0]), &output).unwrap();
        let second = messages.take(&packet(BEGINS, 0, &[1, text("b\n")]), &output).unwrap();
        assert_ne!(first >> NUMBER_BIT, second >> NUMBER_BIT);
        assert_eq!((first & BEGINS, second >> LENGTH_BIT & 7), (0, 2));
        let end = |number: u64, words: &[u64]| packet(ENDS, number >> NUMBER_BIT, words);
        assert_eq!(messages.take(&end(second, &[]), &output), Ok(2));
        assert_eq!(messages.take(&end(first, &[text("a %d\n"), 42]), &output), Ok(5));
        let expected = [(Stream::Stderr, b"b\n".to_vec()), (Stream::Stdout, b"a 42\n".to_vec())];
        assert_eq!(*written.lock().unwrap(), expected);
        assert_eq!(messages.words, 0);
        assert!(messages.take(&end(first, &[]), &output).is_err(), "it has ended");
    }

    #[test]
    fn a_message_to_nowhere_is_answered_with_an_error() {
        let (output, written) = output();
        let nowhere = packet(BEGINS | ENDS, 0, &[2, text("a")]);
        assert_eq!(Messages::default().take(&nowhere, &output), Ok(u64::MAX));
        assert!(written.lock().unwrap().is_empty());
    }

    #[test]
    fn messages_without_an_end_are_refused() {
        let (output, _) = output();
        let mut messages = Messages::default();
        let begin = packet(BEGINS, 0, &[0; 7]);
        let taken = (0..MOST_WORDS).take_while(|_| messages.take(&begin, &output).is_ok()).count();
        assert_eq!(taken, MOST_WORDS / 7);
    }
}
