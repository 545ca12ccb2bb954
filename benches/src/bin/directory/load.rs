//! A long load: memory and disk over time.

use crate::server::{batch, filled, server_options};
use crate::{Error, Options};
use hekaton_directory::EpochProof;
use hekaton_directory_server::{Mode, Server};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

/// The number of epochs after which all are proven and pruned, and a point of the curves is measured.
const POINT: usize = 16;

/// Closes epochs one after the other. Those that are proven and not the last ones are pruned, as an operator would.
pub(crate) fn measure(options: &Options) -> Result<(), Error> {
    let folder = options.folder()?;
    filled(options, folder.path(), options.keys)?.close()?;
    let mode = server_options(options, Mode::Auto);
    let parameters = crate::server::parameters();
    let server = Server::open(folder.path(), &parameters, &crate::server::key(), mode)?;
    let (start, mut points) = (Instant::now(), Vec::new());
    for epoch in 0..options.epochs {
        crate::server::send(&server, batch(options, epoch))?;
        server.flush()?;
        if (epoch + 1) % POINT == 0 {
            settle(&server)?;
            points.push(Point {
                seconds: start.elapsed().as_secs_f64(),
                updates: ((epoch + 1) * options.updates) as f64,
                memory: resident()?,
                disk: size(folder.path())?,
            });
        }
    }
    let [.., middle, last] = &points[..] else {
        return Err(format!("--epochs must be at least {}", 2 * POINT).into());
    };
    let middle = points.get(points.len() / 2).unwrap_or(middle);
    let none = ("", f64::NAN);
    options.rate(
        "load: updates, accepted, committed and signed",
        last.updates / last.seconds,
        none,
        "a second, this disk",
    );
    options.line(
        "load: memory of the process at the end",
        last.memory / 1e6,
        ("halfway", middle.memory / 1e6),
        "MB",
    );
    let each = |from: &Point, to: &Point| (to.disk - from.disk) / (to.updates - from.updates);
    options.line("load: disk, second half", each(middle, last), none, "bytes an update");
    if let Some(path) = &options.table {
        let mut table = "seconds,updates,memory_bytes,disk_bytes\n".to_owned();
        for Point { seconds, updates, memory, disk } in &points {
            writeln!(table, "{seconds:.3},{updates},{memory},{disk}")?;
        }
        std::fs::write(path, table)?;
    }
    Ok(())
}

struct Point {
    seconds: f64,
    updates: f64,
    memory: f64,
    disk: f64,
}

/// Attaches a proof of all epochs, whose bytes are not read here, and forgets older ones.
fn settle(server: &Server) -> Result<(), Error> {
    let (from, to) = (server.proven()?, server.view()?.record().epoch);
    let proof = EpochProof { from, to, subcircuits: 1, proof: vec![0; 16 << 10] };
    server.attach(&proof, |_, _| Ok(()))?;
    Ok(server.prune(from)?)
}

/// The memory of this process, in bytes.
fn resident() -> Result<f64, Error> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    let pages = text.split_whitespace().nth(1).and_then(|pages| pages.parse::<f64>().ok());
    Ok(pages.ok_or("/proc/self/statm has another form")? * rustix::param::page_size() as f64)
}

/// Returns the size of the files of a folder on the disk, in bytes.
fn size(folder: &Path) -> Result<f64, Error> {
    let mut all = 0.0;
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        // Files come and go while the database works.
        let Ok(data) = std::fs::metadata(&path) else { continue };
        all += if data.is_dir() { size(&path)? } else { data.len() as f64 };
    }
    Ok(all)
}
