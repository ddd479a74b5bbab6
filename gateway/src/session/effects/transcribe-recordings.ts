/** Transcribes the recordings of one message. A failure takes the place of the transcript, so that it is not retried without end. */
import type { SessionMedia } from "../../ports/media.ts";
import type { ContentBlock } from "../../ports/messages.ts";
import type { EffectiveConfig, ModelAccess } from "../../ports/run-context.ts";
import { isMediaBlock } from "../../ports/messages.ts";
import type { UserRow } from "../machine/log.ts";
import { head } from "../machine/text.ts";
import { sentence } from "../../ports/result.ts";

/** For all recordings of one message together, so that the row stays within its limit. */
const TRANSCRIPTS_CHARS = 60_000;

/** The row with transcripts; undefined when the signal aborted. */
export async function transcribeRecordings(
  row: UserRow,
  config: EffectiveConfig,
  access: ModelAccess | undefined,
  media: Pick<SessionMedia, "transcribe">,
  signal: AbortSignal,
): Promise<UserRow | undefined> {
  const { content } = row.message;
  if (typeof content === "string") return row;
  let left = TRANSCRIPTS_CHARS;
  const transcribed: ContentBlock[] = [];
  for (const block of content) {
    if (!isMediaBlock(block) || block.type !== "audio" || block.transcript !== undefined) {
      transcribed.push(block);
      continue;
    }
    const result = await media.transcribe(block, config, access ?? { apiKeys: {}, headers: {} }, signal);
    if (signal.aborted) return undefined;
    const said = result.ok ? result.value : `(could not be transcribed: ${sentence(result.error)})`;
    const transcript = said.length <= left ? said : `${head(said, left)} [... the rest was left out]`;
    left = Math.max(0, left - said.length);
    transcribed.push({ ...block, transcript });
  }
  return { ...row, message: { ...row.message, content: transcribed } };
}
