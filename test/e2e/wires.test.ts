/** Clouds of models, each by its own wire: a whole turn with a tool call, through the built program. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, it } from "node:test";
import { type CloudModel, startCloudModel } from "../fakes/cloud-model.ts";
import { Machine, textOf } from "./support.ts";

const SECRET = "fake-secret-of-the-access-key";
const WIRES = [
  ["openai", "gpt-5.4-mini", "openai-responses", "sk-fake"],
  ["azure-openai-responses", "my-deployment", "azure-openai-responses", "azure-fake"],
  ["google", "gemini-2.5-flash", "google-generative-ai", "AIza-fake"],
  ["google-vertex", "gemini-2.5-flash", "google-vertex", "AIza-fake"],
  ["mistral", "mistral-medium-latest", "mistral-conversations", "mistral-fake"],
  ["amazon-bedrock", "anthropic.claude-sonnet-4-6", "bedrock-converse-stream", `AKIAFAKEFAKEFAKE:${SECRET}`],
] as const;

describe("a cloud of models", () => {
  const machine = new Machine();
  let fake: CloudModel;
  before(async () => {
    fake = await startCloudModel({ awsSecret: SECRET });
    await machine.up();
  });
  after(async () => {
    await machine.end();
    await fake.close();
  });

  for (const [provider, id, wire, key] of WIRES) {
    it(`[P4.2] ${provider}: text, a tool call, its result, and what it costs`, async () => {
      const client = await machine.client();
      const sessionKey = `agent:main:cli:dm:${randomUUID()}`;
      await client.call("config.set", { path: `apiKeys["${provider}"]`, value: key });
      await client.call("config.set", { path: "model", value: { provider, id, baseUrl: fake.url, wire, price: { input: 2, output: 10 } } });
      const path = `${provider}.md`;
      fake.enqueue(
        {
          text: "I write it down.",
          toolCalls: [{ name: "gsv__WriteFile", arguments: { path, content: "from the cloud" } }],
          usage: { input: 1000, output: 100 },
        },
        { text: "It is written.", usage: { input: 1000, output: 100 } },
      );
      const end = await client.ask("write", { sessionKey });
      assert.deepEqual([end.state, textOf(end)], ["final", "It is written."]);
      const file = (await client.call("workspace.read", { path })) as { content: string };
      assert.equal(file.content, "from the cloud");
      const { tokens } = (await client.call("session.stats", { sessionKey })) as { tokens: { costUsd?: number } };
      assert.ok(Math.abs((tokens.costUsd ?? 0) - 0.006) < 1e-9, `${tokens.costUsd}`);
      fake.enqueue({ status: 403, message: "no" });
      const refused = await client.ask("again", { sessionKey });
      assert.deepEqual([refused.state, refused.reason], ["error", "model.auth"]);
      assert.ok(!(refused.error ?? "").includes(key));
      client.close();
    });
  }

  it("[F6] a provider that cannot be used is refused with what to use instead", async () => {
    const client = await machine.client();
    await client.call("config.unset", { path: "model" });
    await assert.rejects(
      client.call("config.set", { path: "model.provider", value: "openai-codex" }),
      /is not built in\. It needs the login/,
    );
    await assert.rejects(client.call("config.set", { path: "cloud.awsRegion", value: "no region/.." }), /config\.invalid/);
    await client.call("config.set", { path: "model", value: { provider: "cloudflare-workers-ai", id: "@cf/openai/gpt-oss-20b" } });
    const end = await client.ask("hello");
    assert.deepEqual([end.state, end.reason], ["error", "model.not_configured"]);
    assert.match(end.error ?? "", /cloud\.cloudflareAccountId.*apiKeys\.cloudflare-workers-ai/);
    client.close();
  });
});
