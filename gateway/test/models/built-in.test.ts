/** Providers of the catalogue, at their own addresses: what would be sent to them. And Workers AI through its binding. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createModelClient } from "../../src/models/model-client.ts";
import type { ModelAi, ModelOutcome } from "../../src/ports/model.ts";
import { openaiEvents } from "../../../test/fakes/model-wire.ts";
import { configWith, request, tool } from "./support.ts";

interface Sent {
  readonly url: string;
  readonly headers: Headers;
  readonly body: Readonly<Record<string, unknown>>;
}
/** The request of one call; the provider refuses it. */
async function sentTo(provider: string, id: string, cloud: object = {}): Promise<Sent> {
  let sent: Sent | undefined;
  const client = createModelClient({
    fetch: (input, init) => {
      const asked = new Request(input, init);
      sent = { url: asked.url, headers: asked.headers, body: JSON.parse(String(init?.body)) as Sent["body"] };
      return Promise.resolve(new Response("{}", { status: 400 }));
    },
  });
  const config = configWith({ provider, id }, { cloud });
  const heard = request({
    model: { provider, id },
    config,
    access: { apiKeys: { [provider]: "key-1" }, headers: {} },
    tools: [tool("a__B")],
  });
  await client.call(heard.request);
  assert.ok(sent);
  return sent;
}

describe("[P4.2] a provider of the catalogue is asked", () => {
  it("at its own address, by the wire of the model", async () => {
    const at = async (provider: string, id: string, cloud?: object): Promise<string> => (await sentTo(provider, id, cloud)).url;
    assert.match(await at("anthropic", "claude-sonnet-5"), /^https:\/\/api\.anthropic\.com\/v1\/messages/);
    assert.equal(await at("openai", "gpt-5.4-mini"), "https://api.openai.com/v1/responses");
    assert.equal(await at("openai", "newer-than-the-catalogue"), "https://api.openai.com/v1/responses");
    assert.equal(await at("deepseek", "deepseek-flash"), "https://api.deepseek.com/chat/completions");
    assert.equal(await at("openrouter", "openai/gpt-5.4-mini"), "https://openrouter.ai/api/v1/chat/completions");
    assert.match(await at("opencode", "claude-opus-5"), /^https:\/\/opencode\.ai\/zen\/v1\/messages/);
    assert.equal(await at("mistral", "mistral-medium-latest"), "https://api.mistral.ai/v1/chat/completions");
    assert.equal(
      await at("azure-openai-responses", "my-deployment", { azureResource: "mine" }),
      "https://mine.openai.azure.com/openai/v1/responses?api-version=v1",
    );
  });
  it("in its own dialect of the wire", async () => {
    const { body } = await sentTo("together", "MiniMaxAI/MiniMax-M2.7");
    assert.ok(Object.hasOwn(body, "max_tokens"), "not the newer name of the field");
  });
  it("Cloudflare's AI Gateway gets its own key, and no provider's", async () => {
    const cloud = { cloudflareAccountId: "acc", cloudflareGatewayId: "gate" };
    for (const id of ["claude-opus-5", "gpt-5.4-mini"]) {
      const { url, headers } = await sentTo("cloudflare-ai-gateway", id, cloud);
      assert.match(url, /^https:\/\/gateway\.ai\.cloudflare\.com\/v1\/acc\/gate\/(anthropic|openai|compat)\//);
      assert.deepEqual(
        [headers.get("cf-aig-authorization"), headers.get("authorization"), headers.get("x-api-key")],
        ["Bearer key-1", null, null],
      );
    }
  });
});

describe("[P4.2] Workers AI", () => {
  const id = "@cf/openai/gpt-oss-120b";
  const provider = "cloudflare-workers-ai";
  const asked: { model: string; inputs: Readonly<Record<string, unknown>> }[] = [];
  const through = (answer: () => Promise<Response>): Promise<ModelOutcome> => {
    const ai: ModelAi = {
      run(model, inputs, options) {
        assert.equal(options.returnRawResponse, true);
        asked.push({ model, inputs });
        return answer();
      },
    };
    const client = createModelClient({ ai, fetch: () => Promise.reject(new Error("the network must not be used")) });
    const heard = request({ model: { provider, id }, config: configWith({ provider, id }), tools: [tool("laptop__Read")] });
    return client.call(heard.request);
  };
  const stream = (text: string): Promise<Response> =>
    Promise.resolve(new Response(text, { headers: { "content-type": "text/event-stream" } }));

  it("is asked through the binding without a key: text, a tool call, tokens and price", async () => {
    const answer = {
      text: "Let me see. ",
      toolCalls: [{ name: "laptop__Read", arguments: { a: 1 } }],
      usage: { input: 1_000_000, output: 0 },
    };
    const outcome = await through(() =>
      stream(
        openaiEvents(answer, id, () => "1")
          .map(({ bytes }) => bytes)
          .join(""),
      ),
    );
    assert.ok(outcome.kind === "replied", JSON.stringify(outcome));
    assert.deepEqual(
      outcome.calls.map(({ name, arguments: given }) => [name, given]),
      [["laptop__Read", { a: 1 }]],
    );
    assert.deepEqual([outcome.usage.input, outcome.usage.costUsd], [1_000_000, 0.35]);
    const { model, inputs } = asked.at(-1) ?? {};
    assert.deepEqual([model, inputs?.["model"], inputs?.["stream"]], [id, undefined, true]);
    assert.ok(Array.isArray(inputs?.["messages"]) && Array.isArray(inputs["tools"]));
  });
  it("the older format of answers is understood, with calls", async () => {
    const said = [
      { response: "Hello " },
      { response: "you" },
      { tool_calls: [{ name: "laptop__Read", arguments: { b: 2 } }], response: "" },
      { response: "", usage: { prompt_tokens: 4, completion_tokens: 2, total_tokens: 6 } },
    ];
    const outcome = await through(() => stream(`${said.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("")}data: [DONE]\n\n`));
    assert.ok(outcome.kind === "replied", JSON.stringify(outcome));
    assert.equal(outcome.message.content[0]?.type === "text" && outcome.message.content[0].text, "Hello you");
    assert.deepEqual(
      outcome.calls.map(({ arguments: given }) => given),
      [{ b: 2 }],
    );
    assert.deepEqual([outcome.usage.input, outcome.usage.output], [4, 2]);
  });
  it("[F48] what the binding throws has its reason", async () => {
    const failure = async (message: string): Promise<unknown> => {
      const outcome = await through(() => Promise.reject(new Error(message)));
      return outcome.kind === "failed" && [outcome.error.reason, outcome.retryable];
    };
    assert.deepEqual(await failure("3036: You have used up your daily free allocation"), ["model.rate_limited", true]);
    assert.deepEqual(await failure("3040: Capacity temporarily exceeded, please try again."), ["model.overloaded", true]);
    assert.deepEqual(await failure("5007: No such model or task"), ["model.rejected", false]);
  });
  it("without the binding it says that it needs an account and a token", async () => {
    const heard = request({ model: { provider, id }, config: configWith({ provider, id }) });
    const outcome = await createModelClient().call(heard.request);
    assert.ok(outcome.kind === "failed");
    assert.equal(outcome.error.reason, "model.not_configured");
    assert.match(
      `${outcome.error.message} ${outcome.error.hint}`,
      /Cloudflare account.*cloud\.cloudflareAccountId.*apiKeys\.cloudflare-workers-ai/,
    );
  });
});
