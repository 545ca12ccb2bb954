//! A server of NATS.

use crate::Error;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A server that syncs every write, killed when it is dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
    _folder: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    pub(crate) fn start(program: &Path) -> Result<Self, Error> {
        let folder = tempfile::tempdir()?;
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let config = folder.path().join("nats.conf");
        let store = folder.path().join("store");
        let text = format!(
            "host: 127.0.0.1\nport: {port}\njetstream {{\n  store_dir: {store:?}\n  sync_interval: always\n}}\n"
        );
        std::fs::write(&config, text)?;
        let mut command = Command::new(program);
        let spawned =
            command.arg("-c").arg(&config).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = spawned.map_err(|error| format!("{}: {error}", program.display()))?;
        let address = format!("nats://127.0.0.1:{port}");
        let server = Self { child, address, _folder: folder };
        for _ in 0..200 {
            if std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Ok(server);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Err("the NATS server does not answer".into())
    }
}
