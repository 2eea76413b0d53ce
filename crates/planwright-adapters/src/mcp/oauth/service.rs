//! Signing in from the page of a service: the browser comes back to the service, and not to a port of
//! this machine.

use super::sign_in::{Introduction, KnownAs, OAuthSignInError};
use super::tokens::{ServerAccount, SignInTokens};
use crate::mcp::McpServers;
use planwright_core::principal::Principal;
use planwright_engine::port::{
    BoxFuture, ProviderVisit, ReturnedCode, ServerSignInError, ServerSignIns, SignInServer,
};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Introductions that are remembered: one for each server, and each name the service is reached by.
const MAX_INTRODUCTIONS: usize = 200;

/// A server that people of a service can sign in to.
#[derive(Debug, Clone)]
pub struct ServiceServer {
    pub name: String,
    pub url: String,
    /// People sign in by themselves.
    pub is_personal: bool,
    /// What the operator was given when this service was made known there.
    pub known_as: Option<KnownAs>,
}

impl ServiceServer {
    /// The account that this person signs in to.
    fn account(&self, person: &Principal) -> ServerAccount {
        match self.is_personal {
            true => ServerAccount::of_person(&self.name, person.clone()),
            false => ServerAccount::shared(&self.name),
        }
    }
}

/// The servers of a service, and where this service is known.
pub struct ServiceSignIns {
    servers: BTreeMap<String, ServiceServer>,
    tokens: SignInTokens,
    remote: McpServers,
    /// By server and by where browsers come back to: making the service known again for every person
    /// would fill the lists of those who sign in.
    known: Mutex<BTreeMap<(String, String), Introduction>>,
}

impl std::fmt::Debug for ServiceSignIns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ServiceSignIns")
            .field(&self.servers.keys().collect::<Vec<_>>())
            .finish()
    }
}

impl ServiceSignIns {
    /// From here on calls of these servers that want a sign-in send people to the page.
    pub fn new(
        servers: impl IntoIterator<Item = ServiceServer>,
        tokens: SignInTokens,
        remote: McpServers,
    ) -> Self {
        remote.offer_sign_in_page();
        let servers = servers.into_iter();
        Self {
            servers: servers
                .map(|server| (server.name.clone(), server))
                .collect(),
            tokens,
            remote,
            known: Mutex::default(),
        }
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<(String, String), Introduction>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn introduce(
        &self,
        server: &str,
        redirect: &str,
    ) -> Result<Introduction, ServerSignInError> {
        let place = (server.to_owned(), redirect.to_owned());
        if let Some(introduction) = self.known().get(&place) {
            return Ok(introduction.clone());
        }
        let found = self.find(server)?;
        let unavailable = ServerSignInError::Unavailable;
        // What the operator was given is the same at every service.
        let is_registered = found.known_as.is_none();
        if is_registered {
            let shared = self.tokens.introduction::<Introduction>((server, redirect));
            let shared = shared.await.map_err(unavailable)?;
            if let Some(shared) = shared.filter(|shared| shared.is_for(&found.url)) {
                return Ok(shared);
            }
        }
        let named = (found.name.as_str(), found.url.as_str());
        let made = Introduction::make(named, found.known_as.clone(), redirect.to_owned()).await;
        let made = made.map_err(|error| explain(&error))?;
        if is_registered {
            let kept = self
                .tokens
                .keep_introduction((server, redirect), Some(&made));
            if kept.await.map_err(unavailable)? {
                return Ok(made);
            }
        }
        let mut known = self.known();
        if known.len() >= MAX_INTRODUCTIONS {
            known.clear();
        }
        known.insert(place, made.clone());
        Ok(made)
    }

    async fn redeem(
        &self,
        (server, person): (&str, &Principal),
        visit: &ProviderVisit,
        returned: ReturnedCode<'_>,
    ) -> Result<(), ServerSignInError> {
        let account = self.find(server)?.account(person);
        let introduction = self.introduce(server, &visit.redirect).await?;
        let issuer = returned.issuer.map(str::to_owned);
        introduction
            .check_issuer(issuer.as_ref())
            .map_err(|error| explain(&error))?;
        let redeemed =
            introduction.redeem(returned.code, &visit.verifier, (&self.tokens, &account));
        if let Err(error) = redeemed.await {
            // What it was known by may be forgotten there: the next person begins anew.
            let place = (server.to_owned(), visit.redirect.clone());
            self.known().remove(&place);
            let forgotten = self
                .tokens
                .keep_introduction::<Introduction>((server, &visit.redirect), None);
            if let Err(reason) = forgotten.await {
                tracing::debug!(
                    server,
                    reason,
                    "where this program is known cannot be forgotten"
                );
            }
            return Err(explain(&error));
        }
        // Its tools may not be known yet. If it cannot be reached even now, its state says why.
        match account.person() {
            Some(person) => self.remote.learn_tools_as(server, person.clone()).await,
            None => drop(self.remote.connect_one(server).await),
        }
        Ok(())
    }

    fn find(&self, server: &str) -> Result<&ServiceServer, ServerSignInError> {
        let found = self.servers.get(server);
        found.ok_or_else(|| ServerSignInError::Unknown(server.to_owned()))
    }
}

fn explain(error: &OAuthSignInError) -> ServerSignInError {
    let words = error.to_string();
    match error {
        OAuthSignInError::Refused(_) => ServerSignInError::Refused(words),
        OAuthSignInError::Discovery(_)
        | OAuthSignInError::Registration(_)
        | OAuthSignInError::Listen(_)
        | OAuthSignInError::Late
        | OAuthSignInError::Keep(_) => ServerSignInError::Unavailable(words),
    }
}

impl ServerSignIns for ServiceSignIns {
    fn servers<'a>(&'a self, person: &'a Principal) -> BoxFuture<'a, Vec<SignInServer>> {
        Box::pin(async move {
            let mut listed = Vec::with_capacity(self.servers.len());
            for server in self.servers.values() {
                let account = server.account(person);
                let signed_in = self.tokens.is_signed_in(&account, &server.url).await;
                let signed_in = signed_in.unwrap_or(false);
                if signed_in {
                    self.remote
                        .learn_tools(&server.name, account.person().cloned());
                }
                listed.push(SignInServer {
                    name: server.name.clone(),
                    signed_in,
                    is_personal: server.is_personal,
                });
            }
            listed
        })
    }

    fn is_personal(&self, server: &str) -> Option<bool> {
        self.servers.get(server).map(|server| server.is_personal)
    }

    fn sign_out<'a>(
        &'a self,
        server: &'a str,
        person: &'a Principal,
    ) -> BoxFuture<'a, Result<bool, ServerSignInError>> {
        Box::pin(async move {
            let account = self.find(server)?.account(person);
            let forgotten = self.tokens.forget(&account).await;
            forgotten.map_err(ServerSignInError::Unavailable)
        })
    }

    fn address<'a>(
        &'a self,
        server: &'a str,
        visit: &'a ProviderVisit,
    ) -> BoxFuture<'a, Result<String, ServerSignInError>> {
        Box::pin(async move {
            let introduction = self.introduce(server, &visit.redirect).await?;
            let address = introduction.address(&visit.state, &visit.verifier);
            address.map_err(|error| explain(&error))
        })
    }

    fn finish<'a>(
        &'a self,
        of: (&'a str, &'a Principal),
        visit: &'a ProviderVisit,
        returned: ReturnedCode<'a>,
    ) -> BoxFuture<'a, Result<(), ServerSignInError>> {
        Box::pin(self.redeem(of, visit, returned))
    }
}
