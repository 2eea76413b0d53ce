//! The laws of an outbox, for the one in memory.

use planwright_engine::memory::MemoryOutbox;
use planwright_engine::port::Outbox;
use std::sync::Arc;

fn make() -> (Arc<dyn Outbox>, ()) {
    (Arc::new(MemoryOutbox::default()), ())
}

planwright_engine::outbox_laws!(make);
