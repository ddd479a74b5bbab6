/**
 * Transcribes one recording with an OpenAI-compatible server, or with Workers AI where it is bound, within a time limit. Never throws.
 * Its errors must not contain a key, the server's text or the transcript.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { SpeechAi } from "../../ports/media.ts";
import type { MediaBlock } from "../../ports/messages.ts";
import { failure, type Result, type Problem } from "../../ports/result.ts";
import type { EffectiveConfig, ModelAccess } from "../../ports/run-context.ts";
import { guarded } from "../../storage/bucket.ts";
import { extensionFor } from "../../storage/keys.ts";
import { encodeBase64 } from "../../storage/base64.ts";
import { readBounded } from "../../storage/read-bounded.ts";

export type Fetch = (input: string, init: RequestInit) => Promise<Response>;
export interface TranscribePorts {
  /** The recording's bytes; undefined when it is not stored. */
  readonly recording: (key: string) => Promise<ArrayBuffer | undefined>;
  readonly fetch: Fetch;
  readonly ai: SpeechAi | undefined;
}
const OPENAI_URL = "https://api.openai.com/v1";
const OPENAI_MODEL = "whisper-1";
const WORKERS_AI_MODEL = "@cf/openai/whisper-large-v3-turbo";
const ANSWER_BYTES = 1_048_576;
/** Limit for the transcript of one recording: about an hour of speech. */
export const TRANSCRIPT_CHARS = 60_000;
const TRIES = 2;
const PAUSE_MS = 1_000;

type Plan =
  | {
      readonly kind: "openai";
      readonly url: string;
      readonly model: string;
      readonly key: string | undefined;
      readonly language: string | undefined;
    }
  | { readonly kind: "workers-ai"; readonly ai: SpeechAi; readonly model: string; readonly language: string | undefined };

const unset = (message: string, hint?: string): Result<never> => failure("transcription.failed", message, hint);

/** The service to use, or an error that says what to set. */
function planFor(config: EffectiveConfig, access: ModelAccess, ai: SpeechAi | undefined): Result<Plan> {
  const { provider, baseUrl, model, language } = config.transcription ?? {};
  const key = Object.hasOwn(access.apiKeys, "openai") ? access.apiKeys["openai"]?.trim() || undefined : undefined;
  const isNamed = provider === "openai" || baseUrl !== undefined;
  // workers-ai is the default setting. Where it is not bound, a configured OpenAI key selects OpenAI.
  if (!isNamed && ai) return { ok: true, value: { kind: "workers-ai", ai, model: model ?? WORKERS_AI_MODEL, language } };
  if (!isNamed && key === undefined)
    return unset(
      "No transcription service is set up, and Workers AI is only available on Cloudflare.",
      "Set `apiKeys.openai`, or `transcription.baseUrl` for your own server.",
    );
  const url = addressOf(baseUrl ?? OPENAI_URL);
  if (url === undefined)
    return unset("`transcription.baseUrl` is not a valid address.", "Set it to something like `http://127.0.0.1:9000/v1`.");
  if (key === undefined && baseUrl === undefined)
    return unset("No key is set for transcription.", "Run `gsv config set apiKeys.openai -`.");
  // The OpenAI key is only sent to OpenAI and to the configured server.
  return {
    ok: true,
    value: { kind: "openai", url, model: model === undefined || model.startsWith("@cf/") ? OPENAI_MODEL : model, key, language },
  };
}
function addressOf(baseUrl: string): string | undefined {
  if (!URL.canParse(baseUrl)) return undefined;
  const url = new URL(baseUrl);
  if (!/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "")
    return undefined;
  const path = url.pathname.replace(/\/+$/, "");
  return `${url.origin}${path === "" ? "/v1" : path}/audio/transcriptions`;
}

export async function transcribe(
  block: MediaBlock,
  config: EffectiveConfig,
  access: ModelAccess,
  outer: AbortSignal,
  { recording, fetch, ai }: TranscribePorts,
): Promise<Result<string>> {
  const plan = planFor(config, access, ai);
  if (!plan.ok) return plan;
  const object = await guarded("read the recording", () => recording(block.r2Key));
  if (!object.ok) return object;
  if (object.value === undefined) return failure("media.not_found", "The recording is no longer stored.");
  const audio = object.value;
  const timer = new AbortController();
  const late = setTimeout(() => timer.abort(), LIMITS.transcriptionMs);
  const signal = AbortSignal.any([outer, timer.signal]);
  try {
    for (let tries = 1; ; tries++) {
      const got = await attempt(plan.value, audio, block.mimeType, signal, fetch);
      if (got.ok || !got.again || tries >= TRIES || signal.aborted) return got.ok ? finished(got.text) : unset(got.message, got.hint);
      await pause(signal);
    }
  } finally {
    clearTimeout(late);
  }
}
type Attempt = { readonly ok: true; readonly text: string } | (Problem & { readonly ok: false; readonly again: boolean });
const failed = (message: string, again: boolean, hint?: string): Attempt => ({
  ok: false,
  message,
  again,
  ...(hint === undefined ? {} : { hint }),
});
const LATE = `The transcription service did not answer within ${LIMITS.transcriptionMs / 1000} s.`;

function finished(said: string): Result<string> {
  const text = said
    .toWellFormed()
    .replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, "")
    .trim();
  if (text === "") return { ok: true, value: "(no speech)" };
  return {
    ok: true,
    value: text.length <= TRANSCRIPT_CHARS ? text : `${text.slice(0, TRANSCRIPT_CHARS).toWellFormed()} [... the rest was left out]`,
  };
}
async function attempt(plan: Plan, audio: ArrayBuffer, mimeType: string, signal: AbortSignal, fetch: Fetch): Promise<Attempt> {
  const aborted = new Promise<Attempt>((resolve) => {
    if (signal.aborted) resolve(failed(LATE, false));
    else signal.addEventListener("abort", () => resolve(failed(LATE, false)), { once: true });
  });
  const asked = plan.kind === "openai" ? askServer(plan, audio, mimeType, signal, fetch) : askWorkersAi(plan, audio);
  return Promise.race([asked.catch(() => failed("The transcription service could not be reached.", true)), aborted]);
}
async function askServer(
  plan: Plan & { kind: "openai" },
  audio: ArrayBuffer,
  mimeType: string,
  signal: AbortSignal,
  fetch: Fetch,
): Promise<Attempt> {
  const form = new FormData();
  // Services use the extension. The sender's file name is private.
  form.append("file", new File([audio], `audio.${extensionFor(mimeType)}`, { type: mimeType }));
  form.append("model", plan.model);
  form.append("response_format", "json");
  if (plan.language !== undefined) form.append("language", plan.language);
  const response = await fetch(plan.url, {
    method: "POST",
    body: form,
    headers: { Accept: "application/json", ...(plan.key === undefined ? {} : { Authorization: `Bearer ${plan.key}` }) },
    redirect: "manual",
    signal,
  });
  if (!response.ok) {
    await response.body?.cancel();
    const { message, hint } = refusalOf(response.status);
    return failed(message, response.status === 429 || response.status >= 500, hint);
  }
  const body = await readBounded(response, ANSWER_BYTES);
  return body === undefined ? failed("The transcription service's answer is too long.", false) : textIn(parsed(body));
}
function refusalOf(status: number): Problem {
  if (status === 401 || status === 403) return { message: "The transcription service refused the key.", hint: "Check `apiKeys.openai`." };
  if (status === 404 || (status >= 300 && status < 400))
    return {
      message: "The transcription service has no such address or model.",
      hint: "Check `transcription.baseUrl` and `transcription.model`.",
    };
  if (status === 413) return { message: "The recording is too long for the transcription service." };
  if (status === 400 || status === 415 || status === 422) return { message: "The transcription service does not support this recording." };
  if (status === 429) return { message: "The transcription service is overloaded." };
  return { message: `The transcription service answered with status ${status}.` };
}
async function askWorkersAi(plan: Plan & { kind: "workers-ai" }, audio: ArrayBuffer): Promise<Attempt> {
  const answer = await plan.ai.run(plan.model, {
    audio: encodeBase64(new Uint8Array(audio)),
    ...(plan.language === undefined ? {} : { language: plan.language }),
  });
  return textIn(answer);
}
function textIn(answer: unknown): Attempt {
  const text: unknown = typeof answer === "object" && answer !== null ? Reflect.get(answer, "text") : undefined;
  return typeof text === "string" ? { ok: true, text } : failed("The transcription service sent an invalid answer.", false);
}
function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}
function pause(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, PAUSE_MS);
    signal.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
}
