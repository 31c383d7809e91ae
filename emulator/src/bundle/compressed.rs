//! Compressed offload bundles.
//!
//! | bytes of version | 1 | 2 | 3 |
//! |---|---|---|---|
//! | magic `CCOB` | 4 | 4 | 4 |
//! | version | 2 | 2 | 2 |
//! | method: 0 is zlib, 1 is zstd | 2 | 2 | 2 |
//! | size of the file, this header included | | 4 | 8 |
//! | size of the contents | 4 | 4 | 8 |
//! | start of the contents' MD5 hash | 8 | 8 | 8 |

use std::io::{BufRead, Read};

use flate2::{Decompress, FlushDecompress, Status};
use md5::{Digest as _, Md5};
use ruzstd::decoding::StreamingDecoder;

use super::{BundleError, COMPRESSED_MAGIC, MAGIC, MAX_BYTES};

/// How much any stream may unpack into.
const FREE_BYTES: u64 = 64 << 20;
/// How much each byte of a stream may unpack into beyond that.
const MAX_RATIO: u64 = 256;
/// The zstd window that is accepted for small contents: what every decoder should accept.
const MIN_WINDOW: u64 = 8 << 20;
/// The largest window that is accepted, and zstd's own limit.
const MAX_WINDOW: u64 = 128 << 20;
/// Bytes that are unpacked at a time.
const CHUNK: usize = 1 << 16;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Method {
    Zlib,
    Zstd,
}

impl Method {
    fn name(self) -> &'static str {
        match self {
            Method::Zlib => "zlib",
            Method::Zstd => "zstd",
        }
    }
}

struct Header {
    method: Method,
    /// Bytes of the header.
    length: usize,
    /// Bytes of the file, if the header says so.
    file_size: Option<u64>,
    /// Bytes of the contents.
    size: u64,
    hash: [u8; 8],
}

impl Header {
    fn parse<'a>(prefix: &dyn Fn(usize) -> Option<&'a [u8]>) -> Result<Header, BundleError> {
        let get = |end: usize| prefix(end).ok_or(BundleError::Truncated { part: "its header" });
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
        let start = get(COMPRESSED_MAGIC.len() + 4)?;
        let (version, method) = (number(&start[4..6]) as u16, number(&start[6..8]) as u16);
        let (file, size) = match version {
            1 => (8..8, 8..12),
            2 => (8..12, 12..16),
            3 => (8..16, 16..24),
            other => return Err(BundleError::Version(other)),
        };
        let method = match method {
            0 => Method::Zlib,
            1 => Method::Zstd,
            other => return Err(BundleError::Method(other)),
        };
        let length = size.end + 8;
        let header = get(length)?;
        let mut hash = [0; 8];
        hash.copy_from_slice(&header[size.end..]);
        let file_size = (!file.is_empty()).then(|| number(&header[file]));
        Ok(Header { method, length, file_size, size: number(&header[size]), hash })
    }

    /// Checks that a stream may unpack into what the header claims.
    fn check_expansion(&self, compressed: u64) -> Result<(), BundleError> {
        let limit = FREE_BYTES.saturating_add(compressed.saturating_mul(MAX_RATIO)).min(MAX_BYTES);
        match self.size <= limit {
            true => Ok(()),
            false => Err(BundleError::Expansion { compressed, claimed: self.size, limit }),
        }
    }

    /// Unpacks the stream, up to the size that the header claims; how many bytes there were.
    fn unpack<S: BufRead>(&self, source: S, take: impl FnMut(&[u8])) -> Result<u64, BundleError> {
        match self.method {
            Method::Zlib => self.unpack_zlib(source, take),
            Method::Zstd => self.unpack_zstd(source, take),
        }
    }

    fn unpack_zlib<S: BufRead>(
        &self,
        mut source: S,
        mut take: impl FnMut(&[u8]),
    ) -> Result<u64, BundleError> {
        let method = self.method.name();
        let damaged = |problem: String| BundleError::Stream { method, problem };
        let mut stream = Decompress::new(true);
        let mut chunk = vec![0; CHUNK];
        loop {
            let input = source.fill_buf().map_err(|error| damaged(error.to_string()))?;
            let at_end = input.is_empty();
            let (read, written) = (stream.total_in(), stream.total_out());
            let status = stream
                .decompress(input, &mut chunk, FlushDecompress::None)
                .map_err(|error| damaged(error.to_string()))?;
            source.consume((stream.total_in() - read) as usize);
            if stream.total_out() > self.size {
                return Err(BundleError::TooLong { claimed: self.size });
            }
            take(&chunk[..(stream.total_out() - written) as usize]);
            if status == Status::StreamEnd {
                return Ok(stream.total_out());
            }
            let stuck = (stream.total_in(), stream.total_out()) == (read, written);
            if stuck && at_end {
                return Err(BundleError::StreamEnd { method });
            }
            if stuck {
                return Err(damaged("it asks for a dictionary".into()));
            }
        }
    }

    fn unpack_zstd<S: BufRead>(
        &self,
        mut source: S,
        mut take: impl FnMut(&[u8]),
    ) -> Result<u64, BundleError> {
        let method = self.method.name();
        let window = self.size.min(MAX_WINDOW).next_power_of_two().max(MIN_WINDOW);
        let mut ended = false;
        // The decompressor's errors do not say whether there was too little to read.
        let input = Watched { source: &mut source, ended: &mut ended };
        let outcome = StreamingDecoder::new_with_max_window_size(input, window)
            .map_err(|error| error.to_string())
            .and_then(|mut stream| {
                let mut chunk = vec![0; CHUNK];
                let mut size = 0;
                loop {
                    let read = stream.read(&mut chunk).map_err(|error| error.to_string())?;
                    size += read as u64;
                    if read == 0 || size > self.size {
                        return Ok(size);
                    }
                    take(&chunk[..read]);
                }
            });
        match outcome {
            Ok(size) if size > self.size => Err(BundleError::TooLong { claimed: self.size }),
            Ok(size) => Ok(size),
            Err(_) if ended => Err(BundleError::StreamEnd { method }),
            Err(problem) => Err(BundleError::Stream { method, problem }),
        }
    }
}

/// Notes whether a reader asked for more than there is.
struct Watched<'a, S> {
    source: S,
    ended: &'a mut bool,
}

impl<S: Read> Read for Watched<'_, S> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.source.read(buffer)?;
        *self.ended |= read == 0 && !buffer.is_empty();
        Ok(read)
    }
}

pub(super) fn decompress(bytes: &[u8]) -> Result<Vec<u8>, BundleError> {
    let header = Header::parse(&|length| bytes.get(..length))?;
    let given = bytes.len() as u64;
    let end = header.file_size.unwrap_or(given);
    if end > given || end < header.length as u64 {
        return Err(BundleError::FileSize { claimed: end, given });
    }
    // What follows the file's own size is not its own.
    let mut stream = &bytes[header.length..end as usize];
    header.check_expansion(stream.len() as u64)?;
    let mut contents = Vec::new();
    let mut hash = Md5::new();
    let size = header.unpack(&mut stream, |chunk| {
        hash.update(chunk);
        contents.extend_from_slice(chunk);
    })?;
    if size < header.size {
        return Err(BundleError::TooShort { claimed: header.size, actual: size });
    }
    if header.file_size.is_some() && !stream.is_empty() {
        return Err(BundleError::Trailing { method: header.method.name(), bytes: stream.len() as u64 });
    }
    let (claimed, actual) = (header.hash, hash.finalize());
    if claimed[..] != actual[..8] {
        let number = |bytes: &[u8]| bytes[..8].iter().fold(0, |value, &byte| value << 8 | u64::from(byte));
        return Err(BundleError::Hash { claimed: number(&claimed), actual: number(&actual) });
    }
    match contents.starts_with(MAGIC) {
        true => Ok(contents),
        false => Err(BundleError::Contents),
    }
}

pub(super) fn extent<'a>(prefix: &dyn Fn(usize) -> Option<&'a [u8]>) -> Result<u64, BundleError> {
    let header = Header::parse(prefix)?;
    if let Some(size) = header.file_size {
        return match size {
            size if size < header.length as u64 => {
                Err(BundleError::FileSize { claimed: size, given: header.length as u64 })
            }
            size if size > MAX_BYTES => {
                Err(BundleError::Field { field: "size", value: size, limit: MAX_BYTES })
            }
            size => Ok(size),
        };
    }
    // The stream has to be unpacked to see where it ends. It may not be larger than incompressible contents make it.
    let limit = header.length as u64 + header.size + header.size / 16 + CHUNK as u64;
    let mut source = Growing { prefix, at: header.length, limit: limit.min(MAX_BYTES) as usize };
    let mut contents = 0u64;
    header.unpack(&mut source, |chunk| contents += chunk.len() as u64)?;
    Ok(source.at as u64)
}

/// A stream of unknown length: it is read byte by byte if the decompressor does not say how many bytes it needs.
struct Growing<'f, 'a> {
    prefix: &'f dyn Fn(usize) -> Option<&'a [u8]>,
    at: usize,
    limit: usize,
}

impl<'a> Growing<'_, 'a> {
    fn next(&self, length: usize) -> &'a [u8] {
        let end = self.at.saturating_add(length).min(self.limit);
        (self.prefix)(end).and_then(|bytes| bytes.get(self.at..)).unwrap_or_default()
    }
}

impl Read for Growing<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let mut bytes = self.next(buffer.len());
        if bytes.is_empty() {
            bytes = self.next(1.min(buffer.len()));
        }
        buffer[..bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
        Ok(bytes.len())
    }
}

impl BufRead for Growing<'_, '_> {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        Ok(self.next(1))
    }

    fn consume(&mut self, amount: usize) {
        self.at += amount;
    }
}
