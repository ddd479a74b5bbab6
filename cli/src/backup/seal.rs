//! The outer form of a backup: a header, then chunks of ciphertext. The key comes from the passphrase by Argon2id. Each chunk of 64 KiB is
//! sealed with ChaCha20-Poly1305 under its number and whether it is the last one (the STREAM construction), so that no chunk can be
//! changed, moved, repeated or cut off. The header has the length of the file and is authenticated too.

use std::fmt;
use std::io::{self, Read, Seek, SeekFrom, Write};

use argon2::{Algorithm, Argon2, Params, Version};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

use super::go_on;

const MAGIC: &[u8; 10] = b"gsv-backup";
const VERSION: u8 = 1;
const AUTHENTICATED: usize = 48;
pub const HEADER: usize = 80;
const CHUNK: usize = 64 * 1024;
const TAG: usize = 16;
/// RFC 9106, the second recommended choice.
const COST: Cost = Cost {
    memory_kib: 64 * 1024,
    passes: 3,
    lanes: 4,
};
/// A header that asks for more is refused before any work.
const MOST: Cost = Cost {
    memory_kib: 1024 * 1024,
    passes: 16,
    lanes: 16,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cost {
    memory_kib: u32,
    passes: u32,
    lanes: u32,
}

/// Why a file can't be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    NoBackup,
    Newer(u8),
    Passphrase,
    Incomplete {
        bytes: u64,
        of: u64,
    },
    Changed,
    /// The sealed content is not that of a backup.
    Malformed(&'static str),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for Fault {}

impl Fault {
    pub fn error(self) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, self)
    }

    pub fn of(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref().copied()
    }
}

struct Keys {
    chunks: LessSafeKey,
    header: hmac::Key,
}

impl Keys {
    fn derive(passphrase: &str, salt: &[u8], cost: Cost) -> io::Result<Self> {
        let mut out = [0_u8; 64];
        let params = Params::new(cost.memory_kib, cost.passes, cost.lanes, Some(out.len()));
        let params = params.map_err(|_| Fault::NoBackup.error())?;
        Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
            .hash_password_into(passphrase.as_bytes(), salt, &mut out)
            .map_err(|_| Fault::NoBackup.error())?;
        let (chunks, header) = out.split_at(32);
        let chunks = UnboundKey::new(&CHACHA20_POLY1305, chunks).map_err(|_| Fault::NoBackup.error())?;
        Ok(Self {
            chunks: LessSafeKey::new(chunks),
            header: hmac::Key::new(hmac::HMAC_SHA256, header),
        })
    }
}

/// Unique for each chunk; the key is unique for each file.
fn nonce(number: u64, is_last: bool) -> Nonce {
    let mut bytes = [0_u8; 12];
    bytes[3..11].copy_from_slice(&number.to_be_bytes());
    bytes[11] = u8::from(is_last);
    Nonce::assume_unique_for_key(bytes)
}

/// Writes a sealed file. It is whole only after `finish`.
pub struct Sealer<W: Write + Seek> {
    out: W,
    header: [u8; AUTHENTICATED],
    keys: Keys,
    chunk: Vec<u8>,
    number: u64,
    bytes: u64,
    is_broken: bool,
}

impl<W: Write + Seek> Sealer<W> {
    pub fn new(mut out: W, passphrase: &str) -> io::Result<Self> {
        let mut header = [0_u8; AUTHENTICATED];
        header[..10].copy_from_slice(MAGIC);
        header[10] = VERSION;
        for (at, value) in [(12, COST.memory_kib), (16, COST.passes), (20, COST.lanes)] {
            header[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        SystemRandom::new()
            .fill(&mut header[24..40])
            .map_err(|_| io::Error::other("the system gave no random bytes"))?;
        let keys = Keys::derive(passphrase, &header[24..40], COST)?;
        out.write_all(&[0; HEADER])?;
        Ok(Self {
            out,
            header,
            keys,
            chunk: Vec::with_capacity(CHUNK + TAG),
            number: 0,
            bytes: HEADER as u64,
            is_broken: false,
        })
    }

    /// After a failure the chunk may be sealed already and in part in the file: nothing can follow it.
    fn seal(&mut self, is_last: bool) -> io::Result<()> {
        if std::mem::replace(&mut self.is_broken, true) {
            return Err(io::Error::other("a write of the file has failed before"));
        }
        self.seal_chunk(is_last)?;
        self.is_broken = false;
        Ok(())
    }

    fn seal_chunk(&mut self, is_last: bool) -> io::Result<()> {
        if go_on().is_err() {
            // Not `Interrupted`, after which `write_all` would try again.
            return Err(io::Error::from(io::ErrorKind::TimedOut));
        }
        let sealed =
            self.keys
                .chunks
                .seal_in_place_append_tag(nonce(self.number, is_last), Aad::empty(), &mut self.chunk);
        sealed.map_err(|_| io::Error::other("a chunk was not sealed"))?;
        self.out.write_all(&self.chunk)?;
        self.bytes += self.chunk.len() as u64;
        self.number += 1;
        self.chunk.clear();
        Ok(())
    }

    pub fn finish(mut self) -> io::Result<W> {
        self.seal(true)?;
        self.header[40..48].copy_from_slice(&self.bytes.to_le_bytes());
        self.out.seek(SeekFrom::Start(0))?;
        self.out.write_all(&self.header)?;
        self.out
            .write_all(hmac::sign(&self.keys.header, &self.header).as_ref())?;
        self.out.flush()?;
        Ok(self.out)
    }
}

impl<W: Write + Seek> Write for Sealer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A full chunk waits: only what follows shows that it is not the last.
        if self.is_broken || (self.chunk.len() == CHUNK && !bytes.is_empty()) {
            self.seal(false)?;
        }
        let taken = bytes.len().min(CHUNK - self.chunk.len());
        self.chunk.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads what was sealed. Gives no byte that is not authentic.
pub struct Opener<R: Read> {
    input: R,
    keys: Keys,
    number: u64,
    /// Bytes of ciphertext that follow.
    left: u64,
    plain: Vec<u8>,
    at: usize,
}

impl<R: Read> Opener<R> {
    /// `bytes`: the length of the file.
    pub fn new(mut input: R, bytes: u64, passphrase: &str) -> io::Result<Self> {
        let mut header = [0_u8; HEADER];
        let read = read_full(&mut input, &mut header)?;
        if read < MAGIC.len() + 1 || header[..10] != MAGIC[..] {
            return Err(Fault::NoBackup.error());
        }
        if header[10] > VERSION {
            return Err(Fault::Newer(header[10]).error());
        }
        if read < HEADER {
            return Err(Fault::Incomplete {
                bytes,
                of: HEADER as u64,
            }
            .error());
        }
        let number = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let cost = Cost {
            memory_kib: number(12),
            passes: number(16),
            lanes: number(20),
        };
        if header[10] == 0 || cost.memory_kib > MOST.memory_kib || cost.passes > MOST.passes || cost.lanes > MOST.lanes
        {
            return Err(Fault::Changed.error());
        }
        let keys = Keys::derive(passphrase, &header[24..40], cost).map_err(|_| Fault::Changed.error())?;
        let (authenticated, tag) = header.split_at(AUTHENTICATED);
        hmac::verify(&keys.header, authenticated, tag).map_err(|_| Fault::Passphrase.error())?;
        let of = authenticated[40..48]
            .iter()
            .rev()
            .fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
        if bytes < of {
            return Err(Fault::Incomplete { bytes, of }.error());
        }
        if bytes > of || of < (HEADER + TAG) as u64 {
            return Err(Fault::Changed.error());
        }
        Ok(Self {
            input,
            keys,
            number: 0,
            left: of - HEADER as u64,
            plain: Vec::new(),
            at: 0,
        })
    }

    fn next(&mut self) -> io::Result<()> {
        if go_on().is_err() {
            return Err(io::Error::from(io::ErrorKind::TimedOut));
        }
        let size = self.left.min((CHUNK + TAG) as u64);
        self.left -= size;
        self.plain.resize(usize::try_from(size).unwrap_or(0), 0);
        self.at = 0;
        if read_full(&mut self.input, &mut self.plain)? < self.plain.len() {
            self.plain.clear();
            return Err(Fault::Changed.error());
        }
        let nonce = nonce(self.number, self.left == 0);
        let Ok(plain) = self.keys.chunks.open_in_place(nonce, Aad::empty(), &mut self.plain) else {
            self.plain.clear();
            return Err(Fault::Changed.error());
        };
        let length = plain.len();
        self.plain.truncate(length);
        self.number += 1;
        Ok(())
    }
}

impl<R: Read> Read for Opener<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.at == self.plain.len() {
            if self.left == 0 {
                return Ok(0);
            }
            self.next()?;
        }
        let taken = into.len().min(self.plain.len() - self.at);
        into[..taken].copy_from_slice(&self.plain[self.at..self.at + taken]);
        self.at += taken;
        Ok(taken)
    }
}

/// Reads until `into` is full or the input ends.
fn read_full(input: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
    let mut read = 0;
    while read < into.len() {
        match input.read(&mut into[read..]) {
            Ok(0) => break,
            Ok(bytes) => read += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn sealed(plain: &[u8]) -> Vec<u8> {
        let mut sealer = Sealer::new(Cursor::new(Vec::new()), "a passphrase").unwrap();
        sealer.write_all(plain).unwrap();
        sealer.finish().unwrap().into_inner()
    }

    fn opened(sealed: &[u8], passphrase: &str) -> Result<Vec<u8>, Fault> {
        let mut plain = Vec::new();
        Opener::new(sealed, sealed.len() as u64, passphrase)
            .and_then(|mut opener| opener.read_to_end(&mut plain))
            .map_err(|error| Fault::of(&error).unwrap())?;
        Ok(plain)
    }

    #[test]
    fn bk6_what_was_sealed_is_read_again_at_every_length_around_a_chunk() {
        for length in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK] {
            let plain: Vec<u8> = (0_u8..=255).cycle().take(length).collect();
            let sealed = sealed(&plain);
            assert_eq!(opened(&sealed, "a passphrase").unwrap(), plain, "{length}");
        }
    }

    /// As the encoder of a stream does when it is dropped after an error.
    #[test]
    fn bk6_a_write_after_a_full_disk_is_an_error_again() {
        struct Full(Cursor<Vec<u8>>);
        impl Write for Full {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                if self.0.position() > CHUNK as u64 {
                    return Err(io::Error::from(io::ErrorKind::StorageFull));
                }
                self.0.write(bytes)
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        impl Seek for Full {
            fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
                self.0.seek(to)
            }
        }
        let mut sealer = Sealer::new(Full(Cursor::new(Vec::new())), "a passphrase").unwrap();
        let plain = vec![7; 3 * CHUNK];
        let full = sealer.write_all(&plain).unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::StorageFull);
        for _ in 0..3 {
            assert!(sealer.write(&plain).is_err());
        }
        assert!(sealer.finish().is_err());
    }

    #[test]
    fn bk7_a_changed_moved_missing_or_added_byte_is_refused() {
        let plain = vec![7_u8; 2 * CHUNK + 100];
        let whole = sealed(&plain);
        let chunk = CHUNK + TAG;
        for at in [
            0,
            10,
            12,
            17,
            21,
            30,
            40,
            47,
            50,
            HEADER,
            HEADER + chunk - 1,
            HEADER + chunk,
            whole.len() - 1,
        ] {
            let mut changed = whole.clone();
            changed[at] ^= 0x41;
            assert!(opened(&changed, "a passphrase").is_err(), "byte {at}");
        }
        let of = whole.len() as u64;
        for cut in [HEADER + 1, HEADER + chunk, HEADER + 2 * chunk, whole.len() - 1] {
            let fault = opened(&whole[..cut], "a passphrase").unwrap_err();
            assert_eq!(fault, Fault::Incomplete { bytes: cut as u64, of });
        }
        let mut longer = whole.clone();
        longer.push(0);
        assert_eq!(opened(&longer, "a passphrase"), Err(Fault::Changed));
        let mut moved = whole.clone();
        let (one, two) = moved[HEADER..].split_at_mut(chunk);
        one.swap_with_slice(&mut two[..chunk]);
        assert_eq!(opened(&moved, "a passphrase"), Err(Fault::Changed));
    }

    #[test]
    fn bk7_a_wrong_passphrase_a_newer_version_and_another_file_are_told_apart() {
        let whole = sealed(b"text");
        assert_eq!(opened(&whole, "another"), Err(Fault::Passphrase));
        let mut newer = whole.clone();
        newer[10] = 2;
        assert_eq!(opened(&newer, "a passphrase"), Err(Fault::Newer(2)));
        assert_eq!(opened(b"PK\x03\x04 and so on", "a passphrase"), Err(Fault::NoBackup));
        assert_eq!(opened(b"", "a passphrase"), Err(Fault::NoBackup));
    }

    #[test]
    fn bk9_a_header_that_asks_for_too_much_memory_is_refused_before_any_work() {
        let mut whole = sealed(b"text");
        whole[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(opened(&whole, "a passphrase"), Err(Fault::Changed));
    }
}
