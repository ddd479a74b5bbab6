/** The model that answers. */
import { ModelRef } from "./chat.ts";
import { method, t } from "./dsl.ts";

method("model.test", {
  doc: "Calls a model once with a few tokens, and says whether it answers. It stores nothing and belongs to no session.",
  params: {
    /** Absent: the model of the default agent. */
    model: t.optional(ModelRef),
  },
  result: {
    /** The model that answered. */
    model: ModelRef,
    tookMs: t.int(),
  },
  callers: ["client"],
  scope: "operate",
  audit: "none",
  errors: [
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
