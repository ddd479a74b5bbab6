/** [P5.6] Tests speech to text against a server with the real multipart wire and against a fake of Workers AI. */
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { type FakeTranscription, startFakeTranscription } from "../../../../test/fakes/fake-transcription.ts";
import type { MediaBlock } from "../../ports/messages.ts";
import type { Result } from "../../ports/result.ts";
import type { EffectiveConfig, ModelAccess } from "../../ports/run-context.ts";
import type { SpeechAi } from "../../ports/media.ts";
import { TRANSCRIPT_CHARS, transcribe } from "./transcribe.ts";
import { sentence } from "../../ports/result.ts";

const SOUND = new TextEncoder().encode("OggS and so on");
const block: MediaBlock = { type: "audio", r2Key: "media/s/a.ogg", mimeType: "audio/ogg", filename: "private name.ogg" };
const KEYS: ModelAccess = { apiKeys: { openai: "sk-secret-of-tests" }, headers: { "x-mine": "other" } };
const NONE: ModelAccess = { apiKeys: {}, headers: {} };
const config = (transcription: EffectiveConfig["transcription"]): EffectiveConfig => ({
  model: { provider: "demo", id: "demo" },
  timeouts: { llmMs: 1_000, toolMs: 1_000 },
  limits: { stepsPerRun: 1, runMs: 1_000, runCostUsd: 1 },
  session: { mainKey: "main" },
  userTimezone: "UTC",
  ...(transcription === undefined ? {} : { transcription }),
});
const reasonOf = (result: Result<string>): string => (result.ok ? "ok" : `${result.error.reason}: ${sentence(result.error)}`);

describe("[P5.6] speech to text", () => {
  let speech: FakeTranscription;
  let signal = new AbortController().signal;
  before(async () => {
    speech = await startFakeTranscription();
  });
  after(() => speech.close());
  beforeEach(() => {
    signal = new AbortController().signal;
  });
  const ask = (
    more: {
      config?: EffectiveConfig["transcription"];
      access?: ModelAccess;
      ai?: SpeechAi;
      recording?: () => Promise<undefined>;
      fetch?: typeof fetch;
    } = {},
  ): Promise<Result<string>> =>
    transcribe(block, config(more.config ?? { provider: "openai", baseUrl: speech.url }), more.access ?? KEYS, signal, {
      recording: more.recording ?? (() => Promise.resolve(SOUND.slice().buffer)),
      fetch: more.fetch ?? fetch,
      ai: more.ai,
    });

  test("a server gets the file, the model and the key, but not the sender's file name or other headers", async () => {
    assert.deepEqual(await ask({ config: { provider: "openai", baseUrl: speech.url, model: "m-1", language: "de" } }), {
      ok: true,
      value: "heard 14 bytes",
    });
    const heard = speech.heard.at(-1);
    assert.deepEqual(
      [heard?.path, heard?.filename, heard?.authorization, heard?.fields],
      ["/v1/audio/transcriptions", "audio.ogg", "Bearer sk-secret-of-tests", { model: "m-1", response_format: "json", language: "de" }],
    );
    assert.deepEqual(heard?.bytes, SOUND);
  });
  test("a temporary failure is retried once; the final error never contains the server's text", async () => {
    speech.enqueue({ status: 500, body: "boom" });
    assert.equal(reasonOf(await ask()), "ok");
    for (const [status, says] of [
      [401, "refused the key"],
      [404, "no such address or model"],
      [413, "too long"],
      [422, "does not support this recording"],
    ] as const) {
      const before = speech.heard.length;
      speech.enqueue({ status, body: '{"error":"leak sk-secret-of-tests"}' });
      const reason = reasonOf(await ask());
      assert.ok(reason.startsWith("transcription.failed: ") && reason.includes(says), reason);
      assert.doesNotMatch(reason, /leak|sk-secret/);
      assert.equal(speech.heard.length, before + 1);
    }
    speech.enqueue({ status: 503, body: "" }, { status: 503, body: "" });
    assert.match(reasonOf(await ask()), /status 503/);
  });
  test("answers are bounded and validated", async () => {
    for (const body of ["", "no json", "[]", '{"text":5}', JSON.stringify({ text: "x".repeat(1_100_000) })]) {
      speech.enqueue({ body });
      assert.match(reasonOf(await ask()), /^transcription\.failed: .*(invalid answer|too long)/);
    }
    speech.enqueue({ body: JSON.stringify({ text: `a\u0000\u001b[31mb${"y".repeat(TRANSCRIPT_CHARS)}` }) });
    const long = await ask();
    assert.ok(long.ok && long.value.startsWith("a[31mby") && long.value.endsWith("[... the rest was left out]"));
    speech.enqueue({ body: JSON.stringify({ text: " \n " }) });
    assert.deepEqual(await ask(), { ok: true, value: "(no speech)" });
  });
  test("an unreachable server, a redirect, a missing recording and an abort have their own errors", async () => {
    assert.match(reasonOf(await ask({ fetch: () => Promise.reject(new Error("refused")) })), /could not be reached/);
    const seen: RequestInit[] = [];
    const redirecting = (_url: unknown, init?: RequestInit): Promise<Response> => {
      seen.push(init ?? {});
      return Promise.resolve(new Response(null, { status: 302, headers: { location: "http://elsewhere.test" } }));
    };
    assert.match(reasonOf(await ask({ fetch: redirecting })), /no such address/);
    assert.equal(seen[0]?.redirect, "manual");
    assert.match(reasonOf(await ask({ recording: () => Promise.resolve(undefined) })), /^media\.not_found/);
    const stop = new AbortController();
    ({ signal } = stop);
    const asked = ask({ fetch: () => new Promise(() => {}) });
    stop.abort();
    assert.match(reasonOf(await asked), /^transcription\.failed/);
  });
  test("uses the configured service, else bound Workers AI, else OpenAI with a key, else says what to set", async () => {
    const asked: unknown[] = [];
    const ai: SpeechAi = {
      run: (model, input) => {
        asked.push([model, input]);
        return Promise.resolve({ text: "from workers" });
      },
    };
    assert.deepEqual(await ask({ config: { provider: "workers-ai", language: "en" }, ai }), { ok: true, value: "from workers" });
    assert.deepEqual(asked, [["@cf/openai/whisper-large-v3-turbo", { audio: Buffer.from(SOUND).toString("base64"), language: "en" }]]);
    const urls: string[] = [];
    const recording = (url: unknown): Promise<Response> => {
      urls.push(String(url));
      return Promise.resolve(Response.json({ text: "from openai" }));
    };
    assert.equal(reasonOf(await ask({ config: { provider: "workers-ai" }, fetch: recording })), "ok");
    assert.deepEqual(urls, ["https://api.openai.com/v1/audio/transcriptions"]);
    assert.match(
      reasonOf(await ask({ config: { provider: "workers-ai" }, access: NONE })),
      /No transcription service is set up.* Set `apiKeys\.openai`/,
    );
    assert.match(reasonOf(await ask({ config: { provider: "openai" }, access: NONE })), /gsv config set apiKeys\.openai/);
    for (const baseUrl of ["ftp://x", "not a url", "http://u:p@host/v1"])
      assert.match(reasonOf(await ask({ config: { provider: "openai", baseUrl } })), /not a valid address/);
  });
});
