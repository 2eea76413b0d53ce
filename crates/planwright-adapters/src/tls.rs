//! Encryption for everything here that speaks HTTP.

use std::sync::Once;

/// Chooses who does the cryptography. Must be called before the first client is built; may be
/// called again.
pub fn install_provider() {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // An error means that the program has chosen a provider already, which serves as well.
        rustls::crypto::ring::default_provider()
            .install_default()
            .unwrap_or_default();
    });
}
