/**
 * Compares the sections that a definition gives the prompt with the digests that were stored when it came into force (rule AD10). The
 * comparison is of bytes: no text is judged by its meaning.
 */
import type { DefinedAgent } from "../ports/agents.ts";
import type { AssembledPrompt } from "../ports/prompt.ts";

/** The sections of a run's prompt with their digests. */
export interface DefinedLayers {
  readonly sections: readonly { readonly id: string; readonly text: string; readonly sha256: string | undefined }[];
}

export function layersOf({ sections }: Pick<AssembledPrompt, "sections">, defined: DefinedAgent | undefined): DefinedLayers {
  if (defined === undefined) return { sections: [] };
  const digests = { core: defined.coreSha256, characteristics: defined.characteristicsSha256 };
  return {
    sections: (["core", "characteristics"] as const).flatMap((id) => {
      const text = sections.find((section) => section.id === id)?.text;
      const sha256 = digests[id];
      return text === undefined && sha256 === undefined ? [] : [{ id, text: text ?? "", sha256 }];
    }),
  };
}

/** The first section that the prompt does not have as it was defined. Undefined: all are there. */
export async function overridden(
  system: string,
  { sections }: DefinedLayers,
  sha256Of: (text: string) => Promise<string>,
): Promise<string | undefined> {
  for (const { id, text, sha256 } of sections)
    if (sha256 === undefined || !system.includes(text) || (await sha256Of(text)) !== sha256) return id;
  return undefined;
}
