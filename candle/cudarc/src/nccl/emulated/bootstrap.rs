//! How ranks find each other: the process that made the id listens on the loopback interface, each rank tells it where it listens
//! itself, and learns where the others do.

use super::Failure;
use crate::nccl::sys::{ncclResult_t, ncclUniqueId};
use std::collections::BTreeMap;
use std::ffi::c_char;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process;
use std::thread;
use std::time::Duration;

/// What an id begins with.
const MAGIC: [u8; 8] = *b"AMDNCCL1";

/// How long whoever connects may take to say who it is.
const PATIENCE: Duration = Duration::from_secs(10);

/// What no other communication has.
pub type Nonce = [u8; 16];

/// A new id, for whose ranks a thread of this process listens.
pub fn new_id() -> Result<ncclUniqueId, Failure> {
    let listener = listen()?;
    let port = listener.local_addr().map_err(Failure::system)?.port();
    // Its keys are the operating system's random numbers.
    let nonce: Vec<u8> = (0..2)
        .flat_map(|i: u64| RandomState::new().hash_one(i ^ u64::from(process::id())).to_ne_bytes())
        .collect();
    let bytes = [&MAGIC[..], &nonce, &port.to_ne_bytes()].concat();
    let mut internal = [0; 128];
    for (to, from) in internal.iter_mut().zip(&bytes) {
        *to = *from as c_char;
    }
    let key: Nonce = nonce.try_into().unwrap_or_default();
    thread::Builder::new()
        .name("nccl bootstrap".to_owned())
        .spawn(move || serve(&listener, key))
        .map_err(Failure::system)?;
    Ok(ncclUniqueId { internal })
}

fn parse(id: &ncclUniqueId) -> Result<(Nonce, u16), Failure> {
    let bytes = id.internal.map(|c| c as u8);
    let (magic, rest) = bytes.split_at(MAGIC.len());
    if magic != MAGIC {
        return Err(Failure::new(
            ncclResult_t::ncclInvalidArgument,
            "the id is not one of emulated devices".to_owned(),
        ));
    }
    let nonce = Nonce::try_from(&rest[..16]).unwrap_or_default();
    Ok((nonce, u16::from_ne_bytes([rest[16], rest[17]])))
}

fn listen() -> Result<TcpListener, Failure> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(Failure::system)
}

fn connect(port: u16) -> Result<TcpStream, Failure> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).map_err(Failure::system)?;
    stream.set_nodelay(true).map_err(Failure::system)?;
    Ok(stream)
}

/// What a rank says of itself.
#[derive(Clone, Copy)]
struct Hello {
    rank: u32,
    size: u32,
    process: u32,
    device: u32,
    port: u16,
}

impl Hello {
    fn write(self, nonce: &Nonce, to: &mut TcpStream) -> io::Result<()> {
        let Hello { rank, size, process, device, port } = self;
        let mut bytes = nonce.to_vec();
        [rank, size, process, device, port.into()].iter().for_each(|n| bytes.extend(n.to_ne_bytes()));
        to.write_all(&bytes)
    }

    /// None if it is nobody that knows the id.
    fn read(nonce: &Nonce, from: &mut TcpStream) -> Option<Hello> {
        from.set_read_timeout(Some(PATIENCE)).ok()?;
        let mut bytes = [0; 36];
        from.read_exact(&mut bytes).ok()?;
        from.set_read_timeout(None).ok()?;
        let (theirs, numbers) = bytes.split_at(16);
        let at = |i: usize| u32::from_ne_bytes([0, 1, 2, 3].map(|j| numbers[4 * i + j]));
        let port = u16::try_from(at(4)).ok()?;
        let hello = Hello { rank: at(0), size: at(1), process: at(2), device: at(3), port };
        (theirs == nonce).then_some(hello)
    }
}

/// Waits for all ranks, then tells each where the others listen; or for one that does not fit, which is told to all.
fn serve(listener: &TcpListener, nonce: Nonce) {
    let mut ranks: BTreeMap<u32, (Hello, TcpStream)> = BTreeMap::new();
    let answer = loop {
        let Ok((mut stream, _)) = listener.accept() else { return };
        let Some(hello) = Hello::read(&nonce, &mut stream) else { continue };
        let problem = ranks.values().find_map(|(other, _)| contradiction(other, &hello));
        if let Some(problem) = problem {
            let text = [&[1], problem.as_bytes()].concat();
            let _ = tell(&mut stream, &text);
            break text;
        }
        ranks.insert(hello.rank, (hello, stream));
        if ranks.len() == hello.size as usize {
            break [0]
                .into_iter()
                .chain(ranks.values().flat_map(|(hello, _)| hello.port.to_ne_bytes()))
                .collect();
        }
    };
    for (_, stream) in ranks.values_mut() {
        // A rank that is gone is missed by the others.
        let _ = tell(stream, &answer);
    }
}

fn contradiction(a: &Hello, b: &Hello) -> Option<String> {
    if a.size != b.size {
        return Some(format!("rank {} counts {} ranks, rank {} counts {}", a.rank, a.size, b.rank, b.size));
    }
    if a.rank == b.rank {
        return Some(format!("there are two of rank {}", a.rank));
    }
    let same = (a.process, a.device) == (b.process, b.device);
    same.then(|| format!("ranks {} and {} are both on device {} of a process", a.rank, b.rank, a.device))
}

fn tell(stream: &mut TcpStream, answer: &[u8]) -> io::Result<()> {
    let len = u32::try_from(answer.len()).unwrap_or(0);
    stream.write_all(&len.to_ne_bytes())?;
    stream.write_all(answer)
}

/// A rank on its way into a communication, in three steps: several ranks of one thread take each together.
pub struct Joining {
    nonce: Nonce,
    rank: usize,
    size: usize,
    listener: TcpListener,
    bootstrap: TcpStream,
    /// To lower ranks.
    peers: Vec<Option<TcpStream>>,
}

impl Joining {
    /// Says hello.
    pub fn begin(id: &ncclUniqueId, rank: usize, size: usize, device: usize) -> Result<Joining, Failure> {
        let (nonce, port) = parse(id)?;
        let listener = listen()?;
        let own = listener.local_addr().map_err(Failure::system)?.port();
        let mut bootstrap = connect(port)?;
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let hello = Hello {
            rank: number(rank),
            size: number(size),
            process: process::id(),
            device: number(device),
            port: own,
        };
        hello.write(&nonce, &mut bootstrap).map_err(Failure::system)?;
        Ok(Joining { nonce, rank, size, listener, bootstrap, peers: Vec::new() })
    }

    /// Learns where the others are, and connects to those of lower rank.
    pub fn connect(&mut self) -> Result<(), Failure> {
        let mut len = [0; 4];
        self.bootstrap.read_exact(&mut len).map_err(Failure::system)?;
        let mut answer = vec![0; u32::from_ne_bytes(len) as usize];
        self.bootstrap.read_exact(&mut answer).map_err(Failure::system)?;
        let ports = match answer.split_first() {
            Some((0, ports)) => ports,
            problem => {
                let text = problem.map(|(_, text)| String::from_utf8_lossy(text).into_owned());
                return Err(Failure::new(ncclResult_t::ncclInvalidUsage, text.unwrap_or_default()));
            }
        };
        self.peers = (0..self.size).map(|_| None).collect();
        for (peer, port) in self.peers[..self.rank].iter_mut().zip(ports.chunks_exact(2)) {
            let mut stream = connect(u16::from_ne_bytes([port[0], port[1]]))?;
            let rank = u32::try_from(self.rank).unwrap_or(u32::MAX);
            let hello = Hello { rank, size: 0, process: 0, device: 0, port: 0 };
            hello.write(&self.nonce, &mut stream).map_err(Failure::system)?;
            *peer = Some(stream);
        }
        Ok(())
    }

    /// Waits for those of higher rank: a connection to each rank but this one.
    pub fn accept(mut self) -> Result<Vec<Option<TcpStream>>, Failure> {
        let mut missing = self.size - 1 - self.rank;
        while missing > 0 {
            let (mut stream, _) = self.listener.accept().map_err(Failure::system)?;
            let Some(hello) = Hello::read(&self.nonce, &mut stream) else { continue };
            let rank = hello.rank as usize;
            if rank > self.rank && rank < self.size && self.peers[rank].is_none() {
                stream.set_nodelay(true).map_err(Failure::system)?;
                self.peers[rank] = Some(stream);
                missing -= 1;
            }
        }
        Ok(self.peers)
    }
}
