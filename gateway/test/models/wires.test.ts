/** Every wire that the gateway offers, in a real workerd with the bundled modules, against servers that speak it. */
import assert from "node:assert/strict";
import { createVerify, generateKeyPairSync } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { bundleParts } from "../../../scripts/lib/bundle-parts.ts";
import { type CloudModel, type CloudRequest, startCloudModel } from "../../../test/fakes/cloud-model.ts";
import type { ModelOutcome, ModelRequest } from "../../src/ports/model.ts";
import { RawWorkerd } from "../support/raw-workerd.ts";
import { configWith, tool, user } from "./support.ts";

const SECRET = "wJalrXUtnFEMIfake-secret";
const AWS_KEY = `AKIAFAKEFAKEFAKE:${SECRET}`;
const folder = mkdtempSync(join(tmpdir(), "gsv-wires-"));
let workerd: RawWorkerd;
let fake: CloudModel;

before(async () => {
  const modules = await bundleParts(join(import.meta.dirname, "wire-worker.ts"), folder);
  const listed = modules.map((name) => `(name = "${name}", esModule = embed "${name}")`);
  const files = Object.fromEntries(["worker.js", ...modules].map((name) => [name, readFileSync(join(folder, name))]));
  workerd = await RawWorkerd.start(
    folder,
    `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = (
      modules = [ (name = "worker.js", esModule = embed "worker.js"), ${listed.join(", ")} ],
      compatibilityDate = "2026-11-01",
    )),
    (name = "internet", network = (allow = ["public", "private"])),
  ],
  sockets = [ (name = "http", address = "127.0.0.1:0", http = (), service = "main") ],
);`,
    files,
  );
  fake = await startCloudModel({ awsSecret: SECRET });
});
after(async () => {
  await workerd.kill();
  await fake.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Case {
  readonly provider: string;
  readonly id: string;
  readonly wire: string;
  readonly key: string;
  /** Appended to the fake's address. */
  readonly path?: string;
  readonly url: RegExp;
  readonly credential: (request: CloudRequest) => unknown;
  readonly sent: unknown;
  /** Of 100,000 tokens in and 10,000 out, by the catalogue. */
  readonly costUsd: number;
}
const google = { wire: "google-generative-ai", provider: "google", id: "gemini-2.5-flash", sent: "AIza-fake", costUsd: 0.055 };
const CASES: Readonly<Record<string, Case>> = {
  "OpenAI's responses": {
    provider: "openai",
    id: "gpt-5.4-mini",
    wire: "openai-responses",
    key: "sk-fake-key",
    url: /^\/v1\/responses$/,
    credential: ({ headers }) => headers.authorization,
    sent: "Bearer sk-fake-key",
    costUsd: 0.12,
  },
  "Azure's responses": {
    provider: "azure-openai-responses",
    id: "gpt-5.4-mini",
    wire: "azure-openai-responses",
    key: "azure-key",
    url: /^\/openai\/v1\/responses\?api-version=v1$/,
    credential: ({ headers }) => headers["api-key"],
    sent: "azure-key",
    costUsd: 0.12,
  },
  Gemini: {
    ...google,
    key: "AIza-fake",
    url: /^\/v1beta\/models\/gemini-2\.5-flash:streamGenerateContent\?alt=sse$/,
    credential: ({ headers }) => headers["x-goog-api-key"],
  },
  "Vertex AI with an API key": {
    ...google,
    provider: "google-vertex",
    wire: "google-vertex",
    key: "AIza-fake",
    url: /^\/v1\/publishers\/google\/models\/gemini-2\.5-flash:streamGenerateContent\?alt=sse$/,
    credential: ({ headers }) => headers["x-goog-api-key"],
  },
  Mistral: {
    provider: "mistral",
    id: "mistral-medium-latest",
    wire: "mistral-conversations",
    key: "mistral-key",
    url: /^\/v1\/chat\/completions$/,
    credential: ({ headers }) => headers.authorization,
    sent: "Bearer mistral-key",
    costUsd: 0.225,
  },
  "Bedrock with access keys": {
    provider: "amazon-bedrock",
    id: "amazon.nova-lite-v1:0",
    wire: "bedrock-converse-stream",
    key: AWS_KEY,
    url: /^\/model\/amazon\.nova-lite-v1%3A0\/converse-stream$/,
    credential: ({ headers }) => /^AWS4-HMAC-SHA256 Credential=(\w+)/.exec(headers.authorization ?? "")?.[1],
    sent: "AKIAFAKEFAKEFAKE",
    costUsd: 0.0084,
  },
};

async function ask(
  { provider, id, wire, key, path = "" }: Pick<Case, "provider" | "id" | "wire" | "key" | "path">,
  more: Partial<ModelRequest> = {},
): Promise<{ outcome: ModelOutcome; heard: string[] }> {
  const given = {
    model: { provider, id },
    config: configWith({ provider, id, baseUrl: fake.url + path, wire }),
    access: { apiKeys: { [provider]: key }, headers: {} },
    systemPrompt: "You are a test.",
    messages: [user("hello")],
    tools: [tool("laptop__Read")],
    cacheKey: "cache-1",
    timeoutMs: 60_000,
    ...more,
  };
  const response = await fetch(workerd.url, { method: "POST", body: JSON.stringify(given) });
  return (await response.json()) as { outcome: ModelOutcome; heard: string[] };
}
function replied(outcome: ModelOutcome): Extract<ModelOutcome, { kind: "replied" }> {
  assert.equal(outcome.kind, "replied", JSON.stringify(outcome));
  assert.ok(outcome.kind === "replied");
  return outcome;
}
const last = (): CloudRequest => {
  const request = fake.requests.at(-1);
  assert.ok(request);
  return request;
};

for (const [name, it_] of Object.entries(CASES)) {
  describe(`[P4.2] ${name}`, () => {
    it("streams text, and counts tokens and their price by the catalogue", async () => {
      fake.enqueue({ text: "one two three", thinking: "Hm.", usage: { input: 100_000, output: 10_000 } });
      const { outcome, heard } = await ask(it_);
      const { message, usage } = replied(outcome);
      assert.deepEqual(heard, ["one ", "two ", "three"]);
      const said = message.content.flatMap((block) => (block.type === "text" ? [block.text] : []));
      const thought = message.content.flatMap((block) => (block.type === "thinking" ? [block.thinking] : []));
      assert.deepEqual([said.join(""), message.stopReason, message.api], ["one two three", "stop", it_.wire]);
      if (it_.wire !== "mistral-conversations") assert.deepEqual(thought, ["Hm."]);
      assert.deepEqual([usage.input, usage.output], [100_000, 10_000]);
      assert.ok(Math.abs((usage.costUsd ?? 0) - it_.costUsd) < 1e-9, `${usage.costUsd}`);
      assert.match(last().url, it_.url);
      assert.equal(it_.credential(last()), it_.sent);
      assert.match(JSON.stringify(last().body), /You are a test\./);
      assert.match(JSON.stringify(last().body), /laptop__Read/);
    });
    it("calls tools, and takes their results", async () => {
      const args = { command: "echo [1, 2]" };
      fake.enqueue({ text: "Let me see.", toolCalls: [{ name: "laptop__Read", arguments: args }] }, { text: "Done." });
      const first = replied((await ask(it_)).outcome);
      assert.deepEqual(
        first.calls.map(({ name, arguments: given }) => [name, given]),
        [["laptop__Read", args]],
      );
      const [call] = first.calls;
      assert.ok(call);
      const second = await ask(it_, {
        messages: [
          user("hello"),
          first.message,
          {
            role: "toolResult",
            toolCallId: call.providerId,
            toolName: call.name,
            content: [{ type: "text", text: "result 4711" }],
            isError: false,
            timestamp: 2,
          },
        ],
      });
      assert.equal(second.heard.join(""), "Done.");
      assert.match(JSON.stringify(last().body), /result 4711/);
    });
    it("[P5] an answer that breaks off is an error and no call", async () => {
      fake.enqueue({ text: "one two", toolCalls: [{ name: "laptop__Read", arguments: { a: 1 } }], stop: "missing" });
      const { outcome } = await ask(it_);
      assert.deepEqual(outcome.kind === "failed" && [outcome.error.reason, outcome.retryable], ["model.bad_answer", true]);
    });
    it("[P5] [F48] errors have their reasons, before the stream and in it, without the key", async () => {
      const failure = async (script: Parameters<CloudModel["enqueue"]>[0]): Promise<readonly [string, boolean]> => {
        const before = fake.requests.length;
        fake.enqueue(script);
        const { outcome } = await ask(it_);
        assert.ok(outcome.kind === "failed", JSON.stringify(outcome));
        assert.equal(fake.requests.length, before + 1, "asked once");
        assert.ok(!outcome.error.message.includes(SECRET));
        return [outcome.error.reason, outcome.retryable];
      };
      assert.deepEqual(await failure({ status: 429 }), ["model.rate_limited", true]);
      assert.deepEqual(await failure({ status: 403 }), ["model.auth", false]);
      assert.deepEqual(await failure({ status: 400, message: "no" }), ["model.rejected", false]);
      assert.deepEqual(await failure({ status: 503 }), ["model.overloaded", true]);
      assert.deepEqual(await failure({ text: "one", limited: true }), ["model.rate_limited", true]);
    });
  });
}

describe("[P4.2] credentials of clouds", () => {
  it("Bedrock takes an API key as a bearer token", async () => {
    const open = await startCloudModel();
    const bedrock = { provider: "amazon-bedrock", id: "amazon.nova-lite-v1:0", wire: "bedrock-converse-stream", key: "bedrock-api-key" };
    const config = configWith({ provider: bedrock.provider, id: bedrock.id, baseUrl: open.url });
    replied((await ask(bedrock, { config })).outcome);
    assert.equal(open.requests[0]?.headers.authorization, "Bearer bedrock-api-key");
    await open.close();
  });
  it("Bedrock refuses a wrong secret, and the message says what to set", async () => {
    const bedrock = { provider: "amazon-bedrock", id: "amazon.nova-lite-v1:0", wire: "bedrock-converse-stream" };
    const { outcome } = await ask({ ...bedrock, key: "AKIAFAKEFAKEFAKE:another-secret" });
    assert.ok(outcome.kind === "failed");
    assert.equal(outcome.error.reason, "model.auth");
    assert.match(outcome.error.hint ?? "", /gsv config set apiKeys\.amazon-bedrock -/);
  });
  it("Vertex AI exchanges a service account's signature for a token, once for many calls", async () => {
    const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    const key = JSON.stringify({
      type: "service_account",
      project_id: "proj",
      client_email: "test@proj.iam.gserviceaccount.com",
      private_key: privateKey.export({ type: "pkcs8", format: "pem" }),
      token_uri: `${fake.url}/token`,
    });
    const vertex = { provider: "google-vertex", id: "gemini-2.5-flash", wire: "google-vertex", key };
    const before = fake.requests.length;
    replied((await ask(vertex)).outcome);
    replied((await ask(vertex)).outcome);
    const [token, first, second, ...more] = fake.requests.slice(before);
    assert.deepEqual([token?.wire, first?.wire, second?.wire, more.length], ["token", "google-generative-ai", "google-generative-ai", 0]);
    const assertion = String(token?.body["assertion"]);
    const [head = "", claims = "", signature = ""] = assertion.split(".");
    assert.ok(createVerify("RSA-SHA256").update(`${head}.${claims}`).verify(publicKey, signature, "base64url"));
    assert.equal((JSON.parse(Buffer.from(claims, "base64url").toString()) as { aud: string }).aud, `${fake.url}/token`);
    assert.match(first?.headers.authorization ?? "", /^Bearer ya29\.fake-\d+$/);
    assert.equal(first?.headers.authorization, second?.headers.authorization);
    assert.equal(first?.headers["x-goog-api-key"], undefined);
  });
});
