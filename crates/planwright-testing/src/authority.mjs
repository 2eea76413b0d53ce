// A server of the protocol behind an authorization server that others run in earnest.
//
// usage: node authority.mjs FOLDER LOG PORT AUTHORITY_PORT
//
// FOLDER has the packages. Every call and every renewal adds one line to LOG, so that both can be counted from outside.
// POST /test/expire at the authorization server ends all access tokens, POST /test/forget everything that was granted, and after
// POST /test/person/NAME it is NAME who signs in.

import { appendFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, log, port, authorityPort] = process.argv.slice(2);
const require = createRequire(join(folder, "package.json"));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);

const { Provider } = await load("oidc-provider");
const { McpServer } = require("@modelcontextprotocol/sdk/server/mcp.js");
const { StreamableHTTPServerTransport } = require("@modelcontextprotocol/sdk/server/streamableHttp.js");
const { requireBearerAuth } = require("@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js");
const { InvalidTokenError } = require("@modelcontextprotocol/sdk/server/auth/errors.js");
const express = require("express");
const { z } = require("zod");

const note = (line) => appendFileSync(log, `${line}\n`);
const issuer = `http://localhost:${authorityPort}`;
const resource = `http://localhost:${port}/mcp`;

const provider = new Provider(issuer, {
  scopes: ["openid", "offline_access", "mcp:tools"],
  pkce: { required: () => true },
  rotateRefreshToken: true,
  issueRefreshToken: async () => true,
  findAccount: async (_, id) => ({ accountId: id, claims: async () => ({ sub: id }) }),
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  cookies: { keys: ["only for tests"] },
  features: {
    devInteractions: { enabled: false },
    registration: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: async () => true,
      getResourceServerInfo: async (_, wanted) => {
        if (wanted !== resource) throw new Error("another server");
        return { scope: "mcp:tools", audience: resource, accessTokenTTL: 600, accessTokenFormat: "opaque" };
      },
    },
  },
});

let person = "ada";
const grants = new Set();
const tokens = new Set();
provider.on("access_token.saved", (token) => {
  grants.add(token.grantId);
  tokens.add(token);
});
provider.on("grant.success", (ctx) => note(`granted ${ctx.oidc.params.grant_type}`));
provider.on("grant.error", (ctx, error) => note(`refused ${ctx.oidc.params?.grant_type} ${error.message}`));

// The person agrees to everything at once.
async function agree(request, response) {
  const { prompt, params, session } = await provider.interactionDetails(request, response);
  if (prompt.name === "login") {
    const result = { login: { accountId: person } };
    return provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false });
  }
  const grant = new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  grant.addOIDCScope(params.scope);
  grant.addResourceScope(resource, "mcp:tools");
  const result = { consent: { grantId: await grant.save() } };
  return provider.interactionFinished(request, response, result, { mergeWithLastSubmission: true });
}

async function forget(everything) {
  for (const token of tokens) await token.destroy();
  tokens.clear();
  if (!everything) return;
  for (const grant of grants) await provider.RefreshToken.revokeByGrantId(grant);
}

const others = provider.callback();
createServer(async (request, response) => {
  if (request.url.startsWith("/interaction/")) return agree(request, response);
  if (request.url.startsWith("/test/")) {
    if (request.url.startsWith("/test/person/")) person = request.url.slice("/test/person/".length);
    else await forget(request.url === "/test/forget");
    return response.writeHead(204).end();
  }
  return others(request, response);
}).listen(Number(authorityPort), "localhost");

function greeter() {
  const server = new McpServer({ name: "greeter", version: "1.0.0" });
  server.registerTool("greet", { description: "Greets a person.", inputSchema: { name: z.string() } }, ({ name }, { authInfo }) => {
    note(`greeted ${name} as ${authInfo.extra.account}`);
    return { content: [{ type: "text", text: `Hello, ${name}!` }] };
  });
  return server;
}

const metadata = `http://localhost:${port}/.well-known/oauth-protected-resource/mcp`;
const signedIn = requireBearerAuth({
  verifier: {
    verifyAccessToken: async (token) => {
      const found = await provider.AccessToken.find(token);
      if (!found || found.aud !== resource) throw new InvalidTokenError("not known here");
      return { token, clientId: found.clientId, scopes: [...found.scopes], expiresAt: found.exp, extra: { account: found.accountId } };
    },
  },
  requiredScopes: ["mcp:tools"],
  resourceMetadataUrl: metadata,
});

const sessions = new Map();
const app = express();
app.use(express.json());
app.get("/.well-known/oauth-protected-resource/mcp", (_, response) => {
  response.json({ resource, authorization_servers: [issuer], scopes_supported: ["mcp:tools"] });
});
app.all("/mcp", signedIn, async (request, response) => {
  let transport = sessions.get(request.headers["mcp-session-id"]);
  if (!transport) {
    if (request.method !== "POST" || request.body?.method !== "initialize") {
      return response.status(404).json({ jsonrpc: "2.0", id: null, error: { code: -32001, message: "Session not found" } });
    }
    transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      onsessioninitialized: (id) => sessions.set(id, transport),
    });
    await greeter().connect(transport);
  }
  await transport.handleRequest(request, response, request.body);
});
app.listen(Number(port), "localhost");
