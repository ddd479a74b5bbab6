/** Requests to providers: keys, limits, thinking, cache marks, and a prefix whose bytes stay the same from call to call, so that the provider can cache it. */
import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";
import { type FakeModel, type RecordedRequest, startFakeModel } from "../../../test/fakes/fake-model.ts";
import { createModelClient } from "../../src/models/model-client.ts";
import type { Message } from "../../src/ports/messages.ts";
import type { ModelRequest } from "../../src/ports/model.ts";
import { configWith, KEY, request, toFake, tool, user } from "./support.ts";

const client = createModelClient();
let fake: FakeModel;
before(async () => {
  fake = await startFakeModel();
});
afterEach(() => fake.reset());
after(() => fake.close());

async function sent(
  wire: "anthropic-messages" | "openai-completions",
  more: Partial<ModelRequest> = {},
  model: Record<string, unknown> = {},
): Promise<RecordedRequest> {
  const outcome = await client.call(toFake(fake, wire, more, model).request);
  assert.equal(outcome.kind, "replied", JSON.stringify(outcome));
  const last = fake.requests.at(-1);
  assert.ok(last);
  return last;
}
const anthropic = (more?: Partial<ModelRequest>, model?: Record<string, unknown>) => sent("anthropic-messages", more, model);
const openai = (more?: Partial<ModelRequest>, model?: Record<string, unknown>) => sent("openai-completions", more, model);

describe("address and key", () => {
  it("Anthropic: path, key header, our user agent, no browser permission", async () => {
    const { url, headers, body } = await anthropic();
    assert.match(url, /^\/v1\/messages/);
    assert.deepEqual(
      [headers["x-api-key"], headers["authorization"], headers["user-agent"], headers["anthropic-dangerous-direct-browser-access"]],
      [KEY, undefined, "gsv/0.1", undefined],
    );
    assert.deepEqual([body["model"], body["stream"]], ["claude-sonnet-4-5", true]);
  });
  it("OpenAI: path, bearer token, and a request for usage", async () => {
    const { url, headers, body } = await openai();
    assert.equal(url, "/v1/chat/completions");
    assert.deepEqual(
      [headers["authorization"], headers["user-agent"], body["stream_options"]],
      [`Bearer ${KEY}`, "gsv/0.1", { include_usage: true }],
    );
  });
  it("a server without a key gets no key header, over either wire", async () => {
    for (const wire of ["anthropic-messages", "openai-completions"] as const) {
      const { headers } = await sent(wire, { access: { apiKeys: {}, headers: {} } });
      assert.deepEqual([headers["authorization"], headers["x-api-key"]], [undefined, undefined]);
    }
  });
  it("[S5] headers of the configuration are sent", async () => {
    const { headers } = await openai({ access: { apiKeys: { openai: KEY }, headers: { "x-team": "blue" } } });
    assert.equal(headers["x-team"], "blue");
  });
  it("a custom provider over Anthropic's wire", async () => {
    const config = configWith(
      { provider: "demo", id: "demo" },
      { providers: { lab: { baseUrl: `${fake.url}/some/where/v1`, wire: "anthropic-messages" } } },
    );
    const outcome = await client.call(request({ model: { provider: "lab", id: "m" }, config, messages: [user("hi")] }).request);
    assert.equal(outcome.kind, "replied");
    assert.match(fake.requests[0]?.url ?? "", /^\/some\/where\/v1\/messages/);
  });
});

describe("limits and thinking", () => {
  it("the answer's limit is the request's, else the setting's, else a default, never more than the model's", async () => {
    assert.equal((await anthropic()).body["max_tokens"], 32_000);
    assert.equal((await anthropic({ maxTokens: 100 })).body["max_tokens"], 100);
    assert.equal((await anthropic({}, { maxTokens: 5000 })).body["max_tokens"], 5000);
    assert.equal((await openai({ maxTokens: 1_000_000 })).body["max_tokens"], 32_768);
  });
  it("levels become a budget, adaptive effort or an effort word, and no level sends nothing", async () => {
    assert.equal((await anthropic()).body["thinking"], undefined);
    assert.equal((await anthropic({ thinkLevel: "none" })).body["thinking"], undefined);
    const budget = (await anthropic({ thinkLevel: "medium" })).body["thinking"];
    assert.deepEqual(budget, { type: "enabled", budget_tokens: 8192, display: "summarized" });
    const adaptive = await anthropic({ thinkLevel: "high", model: { provider: "anthropic", id: "claude-opus-4-6" } });
    assert.deepEqual(
      [(adaptive.body["thinking"] as { type: string }).type, adaptive.body["output_config"]],
      ["adaptive", { effort: "high" }],
    );
    assert.equal((await openai({ thinkLevel: "low", model: { provider: "openai", id: "gpt-5" } })).body["reasoning_effort"], "low");
    assert.equal((await openai({ thinkLevel: "xhigh", model: { provider: "openai", id: "gpt-5" } })).body["reasoning_effort"], "high");
    assert.equal((await openai({ thinkLevel: "low" })).body["reasoning_effort"], undefined, "gpt-4.1 does not think");
    assert.equal(
      (await openai({}, { thinkLevel: "low", id: "gpt-5" })).body["reasoning_effort"],
      undefined,
      "another model than the configured one, by its own table",
    );
  });
  it("the setting's level applies where the request has none", async () => {
    const { body } = await openai({ model: { provider: "openai", id: "gpt-5" } }, { id: "gpt-5", thinkLevel: "minimal" });
    assert.equal(body["reasoning_effort"], "minimal");
  });
});

describe("[P4.2] prompt caches", () => {
  const tools = [tool("laptop__Bash"), tool("gsv__ReadFile")];
  const step1: Message[] = [user("go")];
  const step2: Message[] = [
    ...step1,
    {
      role: "assistant",
      content: [
        { type: "text", text: "Looking." },
        { type: "toolCall", id: "c1", name: "laptop__Bash", arguments: { command: "ls" } },
      ],
      api: "x",
      provider: "y",
      model: "z",
      usage: { input: 1, output: 1, total: 2 },
      stopReason: "toolUse",
      timestamp: 2,
    },
    {
      role: "toolResult",
      toolCallId: "c1",
      toolName: "laptop__Bash",
      content: [{ type: "text", text: "a.txt" }],
      isError: false,
      timestamp: 3,
    },
  ];
  const unmarked = (value: unknown): string =>
    JSON.stringify(value, (key, inner: unknown) => (key === "cache_control" ? undefined : inner));

  it("Anthropic: marks on the system prompt, the last tool and the last message", async () => {
    const { body } = await anthropic({ tools, messages: step2 });
    const marked = { type: "ephemeral" };
    const list = (key: string) => body[key] as { cache_control?: unknown; name?: string; content?: { cache_control?: unknown }[] }[];
    assert.deepEqual(list("system").at(-1)?.cache_control, marked);
    assert.deepEqual(list("tools").at(-1)?.cache_control, marked);
    assert.deepEqual(list("messages").at(-1)?.content?.at(-1)?.cache_control, marked);
    assert.equal(
      unmarked(body).length + JSON.stringify({ cache_control: marked }).length * 3 - 3,
      JSON.stringify(body).length,
      "three marks, no more",
    );
  });
  it("the bytes before the new messages stay the same from step to step", async () => {
    for (const wire of ["anthropic-messages", "openai-completions"] as const) {
      const one = (await sent(wire, { tools, messages: step1 })).body;
      const two = (await sent(wire, { tools: tools.toReversed(), messages: step2, now: () => 9_999_999_999_999 })).body;
      assert.equal(unmarked(two["system"]), unmarked(one["system"]));
      assert.equal(unmarked(two["tools"]), unmarked(one["tools"]));
      const [before, later] = [one["messages"], two["messages"]] as [unknown[], unknown[]];
      const flat = (messages: unknown[]): string => unmarked(messages).replaceAll('[{"type":"text","text":"go"}]', '"go"');
      assert.equal(flat(later.slice(0, before.length)), flat(before));
    }
  });
});

describe("data that a provider expects back", () => {
  it("Google's signatures of calls are kept and sent again with the call", async () => {
    const config = configWith({ provider: "google", id: "gemini-3.1-pro-preview", baseUrl: `${fake.url}/v1beta/openai` });
    const ask = (messages: readonly Message[]) =>
      client.call(
        request({ model: { provider: "google", id: "gemini-3.1-pro-preview" }, config, messages, tools: [tool("laptop__Bash")] }).request,
      );
    const chunk = (delta: object, more: object = {}) => `data: ${JSON.stringify({ choices: [{ index: 0, delta, ...more }] })}\n\n`;
    const body = chunk(
      {
        tool_calls: [
          {
            index: 0,
            id: "c1",
            function: { name: "laptop__Bash", arguments: "{}" },
            extra_content: { google: { thought_signature: "SIGNATURE" } },
          },
        ],
      },
      { finish_reason: "tool_calls" },
    );
    const scripted = createModelClient({
      fetch: async () => new Response(`${body}data: [DONE]\n\n`, { headers: { "content-type": "text/event-stream" } }),
    });
    const first = await scripted.call(
      request({
        model: { provider: "google", id: "gemini-3.1-pro-preview" },
        config,
        messages: [user("go")],
        tools: [tool("laptop__Bash")],
      }).request,
    );
    assert.ok(first.kind === "replied", JSON.stringify(first));
    await ask([
      user("go"),
      first.message,
      {
        role: "toolResult",
        toolCallId: "c1",
        toolName: "laptop__Bash",
        content: [{ type: "text", text: "ok" }],
        isError: false,
        timestamp: 1,
      },
    ]);
    assert.match(JSON.stringify(fake.requests[0]?.body), /"extra_content":\{"google":\{"thought_signature":"SIGNATURE"\}\}/);
  });
  it("images are sent only to models that accept images", async () => {
    const messages: Message[] = [
      {
        role: "user",
        content: [
          { type: "text", text: "what is this?" },
          { type: "image", data: "aGk=", mimeType: "image/png" },
        ],
        timestamp: 1,
      },
    ];
    assert.match(JSON.stringify((await anthropic({ messages })).body), /"media_type":"image\/png"/);
    const blind = configWith({ provider: "custom", id: "m", baseUrl: fake.url });
    await client.call(request({ model: { provider: "custom", id: "m" }, config: blind, messages }).request);
    assert.match(JSON.stringify(fake.requests.at(-1)?.body), /image omitted/);
  });
});
