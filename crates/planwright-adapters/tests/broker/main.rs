//! The laws of brokers, on a real RabbitMQ and a real Redis that the tests start.

#[cfg(test)]
mod encryption;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod laws;
#[cfg(test)]
mod outside;
#[cfg(test)]
mod scene;

/// Makes a test of each law for each broker.
#[cfg(test)]
macro_rules! on_both_brokers {
    ($lock:ident: $($(#[$attribute:meta])* $law:ident),+ $(,)?) => {
        mod rabbitmq {
            use crate::scene::{Scene, rabbitmq};
            $($(#[$attribute])* #[test] fn $law() { rabbitmq().$lock(|scene: Scene| super::$law(scene)); })+
        }
        mod redis {
            use crate::scene::{Scene, redis};
            $($(#[$attribute])* #[test] fn $law() { redis().$lock(|scene: Scene| super::$law(scene)); })+
        }
    };
}

#[cfg(test)]
pub(crate) use on_both_brokers;
