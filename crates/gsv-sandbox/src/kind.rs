//! What a name of the file system leads to.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Dir,
    File,
    Link,
    Socket,
    /// Devices and pipes.
    Other,
}
