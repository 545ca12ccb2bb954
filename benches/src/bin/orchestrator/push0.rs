//! A dispatcher as push0's text describes it: a work queue of JetStream with one consumer for all dispatchers, acknowledgments that
//! are extended while a prover runs, results looked up before a task is run, published and confirmed before it is acknowledged.

use crate::ours::Sleeper;
use crate::{Error, System, nats};
use async_nats::jetstream::consumer::pull;
use async_nats::jetstream::stream::{Config, RetentionPolicy};
use async_nats::jetstream::{self, AckKind, Context};
use futures_util::StreamExt;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

/// The interval at which an acknowledgment is extended.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// Those who wait for results, by task.
type Waiting = Arc<Mutex<HashMap<usize, oneshot::Sender<()>>>>;

/// Some dispatchers, and a client.
pub(crate) struct Push0 {
    runtime: Runtime,
    context: Context,
    name: String,
    waiting: Waiting,
}

impl Push0 {
    pub(crate) fn start(
        server: &nats::Server,
        dispatchers: usize,
        sleep: Duration,
    ) -> Result<Self, Error> {
        static NAMES: AtomicUsize = AtomicUsize::new(0);
        let name = format!("push0-{}", NAMES.fetch_add(1, Ordering::Relaxed));
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let waiting = Waiting::default();
        let context = runtime.block_on(async {
            let context = jetstream::new(async_nats::connect(&server.address).await?);
            let stream = |part: &str, retention| Config {
                name: format!("{name}-{part}"),
                subjects: vec![format!("{name}.{part}.>")],
                retention,
                ..Config::default()
            };
            let tasks = context.create_stream(stream("in", RetentionPolicy::WorkQueue)).await?;
            let results = context.create_stream(stream("out", RetentionPolicy::Limits)).await?;
            let config = pull::Config {
                durable_name: Some("dispatchers".into()),
                ..pull::Config::default()
            };
            let consumer = tasks.create_consumer(config).await?;
            for _ in 0..dispatchers {
                let (consumer, context, results, name) =
                    (consumer.clone(), context.clone(), results.clone(), name.clone());
                tokio::spawn(async move {
                    // At the end of a measurement its connection is gone.
                    let _ = dispatch(&consumer, &context, &results, &name, sleep).await;
                });
            }
            let mut found = context
                .create_consumer_on_stream(pull::OrderedConfig::default(), format!("{name}-out"))
                .await?
                .messages()
                .await?;
            let collected = Arc::clone(&waiting);
            tokio::spawn(async move {
                while let Some(Ok(message)) = found.next().await {
                    let number =
                        message.subject.rsplit('.').next().and_then(|text| text.parse().ok());
                    let waiter = number.and_then(|number: usize| {
                        collected.lock().ok().and_then(|mut waiting| waiting.remove(&number))
                    });
                    if let Some(waiter) = waiter {
                        let _ = waiter.send(());
                    }
                }
            });
            Ok::<_, Error>(context)
        })?;
        Ok(Self { runtime, context, name, waiting })
    }
}

async fn dispatch(
    consumer: &jetstream::consumer::Consumer<pull::Config>,
    context: &Context,
    results: &jetstream::stream::Stream,
    name: &str,
    sleep: Duration,
) -> Result<(), Error> {
    // One at a time: a dispatcher that fetched more would keep others from running them.
    let mut tasks = consumer.stream().max_messages_per_batch(1).messages().await?;
    while let Some(received) = tasks.next().await {
        let message = received?;
        let number = message.subject.rsplit('.').next().unwrap_or_default().to_owned();
        let subject = format!("{name}.out.{number}");
        // Done before, and delivered again?
        if results.get_last_raw_message_by_subject(&subject).await.is_err() {
            let prove = tokio::task::spawn_blocking(move || Sleeper(sleep).call());
            tokio::pin!(prove);
            let proof = loop {
                tokio::select! {
                    proof = &mut prove => break proof?,
                    () = tokio::time::sleep(HEARTBEAT) => message.ack_with(AckKind::Progress).await?,
                }
            };
            context.publish(subject, proof.into()).await?.await?;
        }
        message.double_ack().await?;
    }
    Ok(())
}

impl System for Push0 {
    fn task(&self, number: usize) -> Result<(), Error> {
        let (done, wait) = oneshot::channel();
        self.waiting.lock().map_err(|_| "a client panicked")?.insert(number, done);
        self.runtime.block_on(async {
            let subject = format!("{}.in.{number}", self.name);
            self.context.publish(subject, "task".into()).await?.await?;
            wait.await?;
            Ok(())
        })
    }
}
