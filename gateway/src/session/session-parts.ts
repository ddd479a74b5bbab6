/** The services that a session uses. Interfaces only. */
import type { ArchiveStore } from "../ports/archives.ts";
import type { ModelRef } from "../../../protocol/gen/types.ts";
import type { GatewayPort } from "../ports/gateway.ts";
import type { SessionMedia } from "../ports/media.ts";
import type { MemoryFiles } from "../ports/memory.ts";
import type { CallTerms, ModelClient, TermsAsk } from "../ports/model.ts";
import type { NativeTools } from "../ports/native-tools.ts";
import type { PromptSource } from "../ports/prompt.ts";
import type { EffectiveConfig } from "../ports/run-context.ts";
import type { ResultFiles } from "./effects/store-result.ts";

/** Created in app/session-wiring.ts, replaced in tests. */
export interface SessionParts {
  readonly gateway: GatewayPort;
  readonly model: ModelClient;
  /** Tokens that fit the model, as far as is known. */
  readonly contextWindow: (model: ModelRef, config: EffectiveConfig) => number;
  /** What a call can cost at most; undefined: it costs nothing and is not counted. */
  readonly terms: (model: ModelRef, config: EffectiveConfig, ask: TermsAsk) => CallTerms | undefined;
  readonly prompts: PromptSource;
  readonly native: NativeTools;
  readonly archives: ArchiveStore;
  readonly files: ResultFiles;
  readonly memory: MemoryFiles;
  readonly media: SessionMedia;
}
