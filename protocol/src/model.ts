/** The model that answers. */
import { ModelRef } from "./chat.ts";
import { ModelPrice } from "./config.ts";
import { method, struct, t } from "./dsl.ts";

method("model.test", {
  doc: "Calls a model once with a few tokens, and says whether it answers. It belongs to no session; limits of money count it.",
  params: {
    /** Absent: the model of the default agent. */
    model: t.optional(ModelRef),
    /** Used for this call alone, in place of the stored key. It is not stored. */
    apiKey: t.optional(t.string(8192, { minLength: 1 })),
  },
  result: {
    /** The model that answered. */
    model: ModelRef,
    tookMs: t.int(),
  },
  callers: ["client"],
  scope: "operate",
  audit: "own",
  errors: [
    "gateway.stopped",
    "limit.rate",
    "budget.agent",
    "budget.day",
    "budget.month",
    "model.not_configured",
    "model.unknown",
    "model.auth",
    "model.overloaded",
    "model.rate_limited",
    "model.rejected",
    "model.context_overflow",
    "model.timeout",
    "model.unreachable",
    "model.bad_answer",
    "model.refused",
  ],
  deferred: true,
  idempotent: true,
});

export const ProviderEntry = struct("ProviderEntry", "A provider that the gateway can use.", {
  provider: t.string(64),
  name: t.string(128),
  /** How many models of it are listed. It may have others. */
  models: t.int(0),
  /** Its key is set, or it needs none. */
  ready: t.bool(),
});
export const ModelEntry = struct("ModelEntry", "A model, with what is known of it.", {
  id: t.string(256),
  contextWindow: t.int(0),
  maxTokens: t.int(0),
  images: t.bool(),
  thinking: t.bool(),
  /** Absent: not known. */
  price: t.optional(ModelPrice),
});
method("models.list", {
  doc: "Lists the providers that the gateway can use, or the listed models of one of them. Asks no provider.",
  params: { provider: t.optional(t.string(64, { minLength: 1 })) },
  result: { providers: t.optional(t.array(ProviderEntry, 256)), models: t.optional(t.array(ModelEntry, 2000)) },
  callers: ["client"],
  scope: "operate",
  audit: "none",
  errors: ["model.unknown"],
  idempotent: true,
});
