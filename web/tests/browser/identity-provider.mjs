// A provider of OpenID Connect with a few people, who sign in with their name and any password.
import { createRequire } from "node:module";

const [peers, port, service] = process.argv.slice(2);
const { Provider } = await import(createRequire(`${peers}/package.json`).resolve("oidc-provider"));

const PEOPLE = {
  ada: { email: "ada@example.org", email_verified: true, groups: ["leads", "staff"] },
  bob: { email: "bob@example.org", email_verified: true, groups: ["others"] },
  eve: { email: "eve@evil.example", email_verified: true, groups: ["leads"] },
  mallory: { email: "ada@example.org", email_verified: false, groups: ["leads"] },
};

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [{ client_id: "planwright", client_secret: "a secret of the provider", redirect_uris: [`${service}/sign-in/oidc/callback`] }],
  claims: { openid: ["sub"], email: ["email", "email_verified", "groups"], profile: [] },
  // What is asked for is in the token itself.
  conformIdTokenClaims: false,
  pkce: { required: () => true },
  cookies: { keys: ["for this test"] },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, ...PEOPLE[id] }) }),
});
provider.listen(Number(port), "127.0.0.1", () => console.log("ready"));
