//! PURE. How much of a file is on the way, at both ends of a transfer (rule TF2). Has no file, no socket and no clock.

use gsv_protocol::limits;

/// The end that sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outgoing {
    size: u64,
    sent: u64,
    acked: u64,
}

/// The other side does what no transfer allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Misuse;

impl Outgoing {
    /// # Errors
    /// The offset lies beyond the end.
    pub fn new(size: u64, offset: u64) -> Result<Self, Misuse> {
        if offset > size {
            return Err(Misuse);
        }
        Ok(Self {
            size,
            sent: offset,
            acked: offset,
        })
    }

    /// Bytes that the next chunk may have; 0: wait.
    pub fn room(&self) -> usize {
        let window = limits::TRANSFER_WINDOW_BYTES.saturating_sub(self.sent - self.acked);
        let most = limits::TRANSFER_CHUNK_BYTES.min(self.size - self.sent);
        // A chunk is cut at the end of the file alone, so that chunks do not become ever smaller.
        if window < most {
            return 0;
        }
        usize::try_from(most).unwrap_or(0)
    }

    pub fn sent(&mut self, bytes: usize) {
        self.sent += bytes as u64;
    }

    /// # Errors
    /// The offset lies beyond the bytes that were sent.
    pub fn acked(&mut self, offset: u64) -> Result<(), Misuse> {
        if offset > self.sent {
            return Err(Misuse);
        }
        self.acked = self.acked.max(offset);
        Ok(())
    }

    pub fn is_all_sent(&self) -> bool {
        self.sent == self.size
    }
}

/// The end that receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Incoming {
    size: u64,
    taken: u64,
    acked: u64,
}

impl Incoming {
    pub fn new(size: u64, offset: u64) -> Self {
        Self {
            size,
            taken: offset,
            acked: offset,
        }
    }

    /// A chunk was written. The offset to acknowledge, when it is time.
    ///
    /// # Errors
    /// It is empty, too large or goes beyond the end of the file.
    pub fn take(&mut self, bytes: usize) -> Result<Option<u64>, Misuse> {
        let bytes = bytes as u64;
        if bytes == 0 || bytes > limits::TRANSFER_CHUNK_BYTES || bytes > self.size - self.taken {
            return Err(Misuse);
        }
        self.taken += bytes;
        if self.taken < self.size && self.taken - self.acked < limits::TRANSFER_PART_BYTES {
            return Ok(None);
        }
        self.acked = self.taken;
        Ok(Some(self.acked))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Both ends with a slow line between them: the window holds, nothing gets stuck, and every byte arrives.
        #[test]
        fn tf2_p18_at_most_a_window_is_on_the_way_and_the_end_is_reached(size in 0u64..40_000_000, from in 0u64..40_000_000, order in proptest::collection::vec(any::<bool>(), 1..64)) {
            let from = from.min(size);
            let (mut out, mut to) = (Outgoing::new(size, from).unwrap(), Incoming::new(size, from));
            let mut line = std::collections::VecDeque::new();
            let mut got = from;
            for turn in order.iter().cycle() {
                let room = out.room();
                if *turn && room > 0 {
                    out.sent(room);
                    line.push_back(room);
                } else if let Some(chunk) = line.pop_front() {
                    got += chunk as u64;
                    if let Some(offset) = to.take(chunk).unwrap() {
                        out.acked(offset).unwrap();
                    }
                } else if room == 0 {
                    break;
                } else {
                    out.sent(room);
                    line.push_back(room);
                }
                let on_the_way: usize = line.iter().sum();
                prop_assert!(on_the_way as u64 <= limits::TRANSFER_WINDOW_BYTES);
            }
            prop_assert!(out.is_all_sent() && got == size);
        }
    }

    #[test]
    fn tf2_what_breaks_the_rules_is_refused() {
        assert_eq!(Outgoing::new(3, 4), Err(Misuse));
        let mut out = Outgoing::new(10, 2).unwrap();
        assert_eq!(out.acked(3), Err(Misuse));
        out.sent(8);
        assert_eq!((out.acked(10), out.is_all_sent(), out.room()), (Ok(()), true, 0));
        let chunk = usize::try_from(limits::TRANSFER_CHUNK_BYTES).unwrap();
        for (size, bytes) in [(10, 0), (10, 11), (u64::MAX, chunk + 1)] {
            assert_eq!(Incoming::new(size, 0).take(bytes), Err(Misuse));
        }
        assert_eq!(Incoming::new(10, 0).take(10), Ok(Some(10)));
    }
}
