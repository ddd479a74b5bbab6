//! The disk stops at any step, with or without what was not synced: after a restart everything that was promised is
//! there, and nothing that was not asked for.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::disk::{Disk, RealDisk};
use super::store::LOG;
use super::*;

const NOW: EpochMs = 1_800_000_000_000;

#[derive(Default)]
struct World {
    steps_left: usize,
    steps: usize,
    /// By inode: how much of a file would survive a power cut.
    synced: HashMap<u64, u64>,
    /// Renames that the folder may not know of yet: from, to, what `to` was.
    unsettled: Vec<(PathBuf, PathBuf, Option<PathBuf>)>,
}

/// Breaks off at a given step, doing half of it, and does nothing ever after.
struct CrashingDisk {
    world: Mutex<World>,
    attic: PathBuf,
}

impl CrashingDisk {
    fn new(steps_left: usize, attic: &Path) -> Arc<Self> {
        Arc::new(Self {
            world: Mutex::new(World {
                steps_left,
                ..World::default()
            }),
            attic: attic.to_owned(),
        })
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    /// True: this is the step at which it breaks.
    fn step(&self) -> io::Result<bool> {
        let mut world = self.world();
        world.steps += 1;
        match world.steps_left {
            0 => Err(io::Error::other("the disk is gone")),
            left => {
                world.steps_left = left - 1;
                Ok(left == 1)
            }
        }
    }

    fn broken<T>() -> io::Result<T> {
        Err(io::Error::other("the disk broke"))
    }

    /// What is left when the power goes: nothing that was not synced.
    fn cut_power(&self, dir: &Path) {
        let mut world = self.world();
        for (from, to, was) in world.unsettled.drain(..).rev() {
            fs::rename(&to, &from).unwrap();
            if let Some(was) = was {
                fs::rename(was, to).unwrap();
            }
        }
        for path in [dir.join(LOG)].iter().filter(|path| path.exists()) {
            let file = File::options().write(true).open(path).unwrap();
            let kept = world.synced.get(&file.metadata().unwrap().ino()).copied().unwrap_or(0);
            file.set_len(kept).unwrap();
        }
    }
}

impl Disk for CrashingDisk {
    fn write_at(&self, file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
        if self.step()? {
            RealDisk.write_at(file, &bytes[..bytes.len() / 2], offset)?;
            return Self::broken();
        }
        RealDisk.write_at(file, bytes, offset)
    }

    fn set_len(&self, file: &File, len: u64) -> io::Result<()> {
        if self.step()? {
            Self::broken()
        } else {
            RealDisk.set_len(file, len)
        }
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        if self.step()? {
            return Self::broken();
        }
        let found = file.metadata()?;
        self.world().synced.insert(found.ino(), found.len());
        Ok(())
    }

    fn create(&self, path: &Path) -> io::Result<File> {
        if self.step()? {
            Self::broken()
        } else {
            RealDisk.create(path)
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let breaks = self.step()?;
        let mut world = self.world();
        let was = to.exists().then(|| self.attic.join(world.steps.to_string()));
        if let Some(was) = &was {
            fs::hard_link(to, was)?;
        }
        RealDisk.rename(from, to)?;
        world.unsettled.push((from.to_owned(), to.to_owned(), was));
        if breaks { Self::broken() } else { Ok(()) }
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        if self.step()? {
            Self::broken()
        } else {
            RealDisk.link(from, to)
        }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        if self.step()? {
            Self::broken()
        } else {
            RealDisk.remove(path)
        }
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        if self.step()? {
            return Self::broken();
        }
        self.world().unsettled.retain(|(_, to, _)| to.parent() != Some(path));
        Ok(())
    }
}

#[derive(Default)]
struct Story {
    /// States that were synced, or could be seen by the outside.
    promised: HashMap<String, CallState>,
    /// The furthest that was tried.
    tried: HashMap<String, CallState>,
}

fn rank(state: Option<CallState>) -> u8 {
    match state {
        None => 0,
        Some(CallState::Accepted) => 1,
        Some(CallState::Started) => 2,
        Some(CallState::Finished) => 3,
        Some(CallState::Released) => 4,
    }
}

fn result_of(call: &str) -> Value {
    // Every third is large enough for a file of its own.
    let bytes = if call.ends_with('3') { 270_000 } else { 100 };
    json!({"callId": call, "result": "x".repeat(bytes)})
}

/// Lives until the disk breaks, rewriting the log on the way. Stops at the first error, as a dying process would.
fn live(ledger: &mut Ledger, story: &mut Story) -> Result<(), LedgerError> {
    for number in 1..=6 {
        let call = format!("c{number}");
        story.tried.insert(call.clone(), CallState::Accepted);
        ledger.accept(NOW, &call, "Bash", true)?.sync()?;
        story.promised.insert(call.clone(), CallState::Accepted);
        if number == 2 {
            ledger.compact()?;
        }
        story.tried.insert(call.clone(), CallState::Started);
        ledger.start(NOW, &call, None)?.sync()?;
        story.promised.insert(call.clone(), CallState::Started);
        if number == 5 {
            continue;
        }
        story.tried.insert(call.clone(), CallState::Finished);
        ledger.finish(NOW, &call, false, &result_of(&call))?.sync()?;
        story.promised.insert(call.clone(), CallState::Finished);
        if number % 2 == 0 {
            story.tried.insert(call.clone(), CallState::Released);
            ledger.release(NOW, &call)?;
        }
        if number == 4 {
            ledger.compact()?;
        }
    }
    Ok(())
}

fn check(dir: &Path, story: &Story, what: &str) {
    let mut ledger = Ledger::open(dir, NOW).unwrap_or_else(|error| panic!("{what}: {error}"));
    for (call, tried) in &story.tried {
        let found = rank(ledger.state(call));
        let promised = rank(story.promised.get(call).copied());
        assert!(
            promised <= found && found <= rank(Some(*tried)),
            "{what}: {call} is {found}, promised {promised}, tried {tried:?}"
        );
        if found >= 3 {
            assert_eq!(ledger.result(call).unwrap(), Some(result_of(call)), "{what}: {call}");
        }
    }
    // And it goes on.
    ledger.accept(NOW, "after", "Bash", true).unwrap().sync().unwrap();
    drop(ledger);
    assert_eq!(
        Ledger::open(dir, NOW).unwrap().state("after"),
        Some(CallState::Accepted),
        "{what}"
    );
}

#[test]
fn p6_p7_k15_k18_the_disk_may_break_at_any_step() {
    let mut steps = 0;
    for cut_power in [false, true] {
        for at in 1.. {
            let root = TempDir::new().unwrap();
            let (dir, attic) = (root.path().join("ledger"), root.path().join("attic"));
            fs::create_dir(&attic).unwrap();
            let disk = CrashingDisk::new(at, &attic);
            let mut story = Story::default();
            let outcome = Ledger::open_on(&dir, NOW, disk.clone()).and_then(|mut ledger| live(&mut ledger, &mut story));
            if cut_power {
                disk.cut_power(&dir);
            }
            check(&dir, &story, &format!("step {at}, power cut: {cut_power}"));
            if outcome.is_ok() {
                steps = at;
                break;
            }
        }
    }
    // Fewer would mean that the story above no longer passes through what it is about.
    assert!(steps > 60, "{steps}");
}

/// One step fails, the ones after it work: a full disk, an error that passes.
struct HiccupDisk {
    steps: Mutex<usize>,
    fails_at: usize,
}
impl HiccupDisk {
    fn step(&self) -> io::Result<()> {
        let mut steps = self.steps.lock().unwrap();
        *steps += 1;
        if *steps == self.fails_at {
            Err(io::Error::from(io::ErrorKind::StorageFull))
        } else {
            Ok(())
        }
    }
}
impl Disk for HiccupDisk {
    fn write_at(&self, file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
        if let Err(error) = self.step() {
            RealDisk.write_at(file, &bytes[..bytes.len() / 2], offset)?;
            return Err(error);
        }
        RealDisk.write_at(file, bytes, offset)
    }
    fn set_len(&self, file: &File, len: u64) -> io::Result<()> {
        self.step().and_then(|()| RealDisk.set_len(file, len))
    }
    fn sync(&self, file: &File) -> io::Result<()> {
        self.step().and_then(|()| RealDisk.sync(file))
    }
    fn create(&self, path: &Path) -> io::Result<File> {
        self.step().and_then(|()| RealDisk.create(path))
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step().and_then(|()| RealDisk.rename(from, to))
    }
    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step().and_then(|()| RealDisk.link(from, to))
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.step().and_then(|()| RealDisk.remove(path))
    }
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.step().and_then(|()| RealDisk.sync_dir(path))
    }
}

#[test]
fn one_failed_disk_operation_costs_one_record_and_no_other() {
    // Opening takes four steps.
    for fails_at in 5..80 {
        let root = TempDir::new().unwrap();
        let dir = root.path().join("ledger");
        let disk = Arc::new(HiccupDisk {
            steps: Mutex::new(0),
            fails_at,
        });
        let mut ledger = Ledger::open_on(&dir, NOW, disk).unwrap();
        let mut errors = 0;
        let mut finished = vec![];
        for number in 1..=9 {
            let call = format!("c{number}");
            let mut step = |outcome: Result<Commit, LedgerError>, ledger: &mut Ledger| {
                let done = outcome.and_then(Commit::sync).is_ok();
                if !done {
                    errors += 1;
                    ledger.distrust();
                }
                done
            };
            let outcome = ledger.begin(NOW, &call, "Write", true);
            step(outcome, &mut ledger);
            if ledger.state(&call) != Some(CallState::Started) {
                continue;
            }
            let outcome = ledger.finish(NOW, &call, false, &result_of(&call));
            if step(outcome, &mut ledger) {
                finished.push(call);
            }
            if number % 3 == 0 && ledger.compact().is_err() {
                errors += 1;
            }
        }
        assert!(errors <= 1, "{fails_at}");
        assert!(finished.len() >= 8, "{fails_at}");
        drop(ledger);
        let ledger = Ledger::open(&dir, NOW).unwrap();
        for call in finished {
            assert_eq!(
                ledger.result(&call).unwrap(),
                Some(result_of(&call)),
                "{fails_at}: {call}"
            );
        }
    }
}
