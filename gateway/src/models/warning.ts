/** What a chosen model needs before it answers, such as a key. A warning and no refusal: the key may be set next. */
import type { ModelRef } from "../../../protocol/gen/types.ts";
import type { ModelClient } from "../ports/model.ts";
import { sentence } from "../ports/result.ts";
import type { EffectiveConfig, ModelAccess } from "../ports/run-context.ts";

export interface WarningPorts {
  readonly config: { effective(): EffectiveConfig; access(providers: readonly string[]): ModelAccess };
  readonly model: Pick<ModelClient, "refusal">;
}
/** Undefined: nothing. */
export function modelWarning({ config, model: client }: WarningPorts, model: ModelRef | undefined): string | undefined {
  const refusal = model && client.refusal(model, config.effective(), config.access([model.provider]));
  return refusal && sentence(refusal);
}
