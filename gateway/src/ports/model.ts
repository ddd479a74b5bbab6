/** One model call. */
import type { ModelRef, ThinkLevel, ToolDefinition, Usage } from "../../../protocol/gen/types.ts";
import type { AssistantMessage, Message } from "./messages.ts";
import type { GsvError } from "./result.ts";
import type { EffectiveConfig, ModelAccess } from "./run-context.ts";

export interface ModelRequest {
  readonly model: ModelRef;
  readonly config: EffectiveConfig;
  readonly access: ModelAccess;
  readonly systemPrompt: string;
  /** Complete and valid: each tool call has exactly one result before the next assistant message. Hydrated: no MediaBlock in it. */
  readonly messages: readonly Message[];
  readonly tools: readonly ToolDefinition[];
  readonly thinkLevel: ThinkLevel | undefined;
  readonly maxTokens: number | undefined;
  /** Stable per conversation, for provider prompt caches. */
  readonly cacheKey: string;
  /** Whole-call bound in ms; first-byte and idle bounds come from LIMITS. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  readonly now: () => number;
  /** Called with text as it arrives, synchronously; must not throw. */
  readonly onText: (text: string) => void;
  /** Called with what the model thinks, in the same way, where the provider shows it. */
  readonly onThought?: (text: string) => void;
  /** Called in the same way with the length of each piece of a tool call's arguments, in UTF-16 units. */
  readonly onArguments?: (length: number) => void;
  /** Called when the provider has taken the call: it answered with status 200, though nothing of the answer has come. */
  readonly onAccepted?: () => void;
}

export type ModelOutcome =
  | {
      readonly kind: "replied";
      readonly message: AssistantMessage;
      /** Tool calls in order; arguments are what the model said and may not fit the tool's schema. */
      readonly calls: readonly {
        readonly providerId: string;
        readonly name: string;
        readonly arguments: Readonly<Record<string, unknown>>;
      }[];
      readonly usage: Usage;
    }
  | {
      readonly kind: "failed";
      readonly error: GsvError;
      readonly retryable: boolean;
      readonly retryAfterMs?: number;
      readonly usage?: Usage;
    };

export interface TermsAsk {
  readonly inputTokens: number;
  /** Those of them that an earlier call of the same run has put into the provider's cache. */
  readonly cachedTokens: number;
  /** The session's setting. */
  readonly maxTokens: number | undefined;
  readonly thinkLevel: ThinkLevel | undefined;
}
/** What one call can cost at most. */
export interface CallTerms {
  /** Dollars for one token; absent: the price is not known. */
  readonly rates?: { readonly output: number };
  /** The highest prices that a call of the model can have; with `rates`. Absent: those of this call. */
  readonly dearest?: { readonly input: number; readonly output: number };
  /** Dollars for the whole input with a known price, else 0. */
  readonly inputUsd: number;
  /** The most tokens of an answer, thoughts included. */
  readonly output: number;
  /** Tokens of `output` that are for thoughts alone, beside `ModelRequest.maxTokens`. */
  readonly thinking: number;
}

export interface ModelClient {
  /** Whether the model can be shown images. */
  takesImages(model: ModelRef, config: EffectiveConfig): boolean;
  /** Why no call of this model can be made with these settings, such as an unknown provider or a missing key. */
  refusal(model: ModelRef, config: EffectiveConfig, access: ModelAccess): GsvError | undefined;
  /** Never throws; never yields a tool call from a stream that broke off. */
  call(request: ModelRequest): Promise<ModelOutcome>;
}

/** Workers AI, as far as it runs models: the server's answer as it comes. */
export interface ModelAi {
  run(
    model: string,
    inputs: Readonly<Record<string, unknown>>,
    options: { readonly returnRawResponse: true; readonly signal?: AbortSignal },
  ): Promise<Response>;
}
