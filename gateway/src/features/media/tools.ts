/** `gsv__Attach`: files that go out with the answer of the current conversation. `gsv__Message` sends files elsewhere. */
import type { Media } from "../../../../protocol/gen/types.ts";
import type { MediaBlock } from "../../ports/messages.ts";
import { bad, FILE_NAMES, fileNames } from "../../tools/arguments.ts";
import { denied, type Tool, tool } from "../../tools/tool.ts";
import { about } from "./words.ts";

const blocksOf = (files: readonly Media[]): readonly MediaBlock[] =>
  files.flatMap(({ type, mimeType, r2Key, filename, size }) =>
    r2Key === undefined
      ? []
      : [
          {
            type,
            r2Key,
            mimeType,
            ...(filename === undefined ? {} : { filename }),
            ...(size === undefined ? {} : { sizeBytes: size }),
          },
        ],
  );

export const MEDIA_TOOLS: readonly Tool[] = [
  tool(
    {
      name: "gsv__Attach",
      description: "Attaches files to the answer that you write next.",
      policyClass: "read_private",
      properties: { files: { type: "array", items: { type: "string" }, description: FILE_NAMES } },
    },
    { files: fileNames },
    async ({ files }, context, store) => {
      if (context.mediaKey === undefined) return denied("Only an agent attaches files, to an answer in its conversation.");
      if (files.length === 0) return bad("`files` is empty.");
      const media = await store.outgoing(files, context);
      if (!media.ok) return media;
      const attached = blocksOf(media.value);
      return { ok: true, result: `Attached to your answer: ${attached.map((file) => about(file)).join(", ")}`, files: attached };
    },
  ),
];
