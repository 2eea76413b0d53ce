//! Encryption for everything here that connects to other programs.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt as _;
use std::path::Path;
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

/// Checks servers by the authorities of a file, or by those of the system. An error names the file.
pub(crate) fn client_config(authorities: Option<&Path>) -> Result<ClientConfig, String> {
    install_provider();
    let builder = ClientConfig::builder();
    Ok(match authorities {
        Some(file) => builder
            .with_root_certificates(read_authorities(file)?)
            .with_no_client_auth(),
        None => builder
            .with_platform_verifier()
            .map_err(|error| error.to_string())?
            .with_no_client_auth(),
    })
}

fn read_authorities(file: &Path) -> Result<RootCertStore, String> {
    let wrong = |reason: String| format!("{}: {reason}", file.display());
    let mut roots = RootCertStore::empty();
    let certificates =
        CertificateDer::pem_file_iter(file).map_err(|error| wrong(error.to_string()))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
        roots
            .add(certificate)
            .map_err(|error| wrong(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(wrong("there is no certificate in it".to_owned()));
    }
    Ok(roots)
}
