/** Who acts, as the audit writes it. PURE. */

/** Blanks of each width and characters that are not seen: a name can't be split by them, or look like another. */
const UNSEEN = /[\s\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]/gu;
export const plainName = (id: string): string => id.replace(UNSEEN, "_").slice(0, 128);
/** A client, node or channel with its token. It chose its name, so nothing in the name may look like another part of the text. */
export const actorText = (mode: string, id: string, tokenId: string): string => `${mode}:${plainName(id)} token:${tokenId}`;

const WITH_TOKEN = /^(.*) token:(\S*)$/s;
/** As the command line names itself (cli, `is_command_line`). Another client may, too: the id of the token says whose it is. */
const COMMAND_LINE = /^client:cli-[0-9a-f]{16}$/i;
/**
 * The actor in a sentence for a person, as the command line writes it: `client:cli-0000145a00009c1f token:first-8b1f` is `gsv (token first-8b1f)`.
 * Without the label of the token, which the holder of an invitation chooses. Other actors, such as a sender, stay unchanged.
 */
export function actorName(by: string): string {
  const [, who, token] = WITH_TOKEN.exec(by) ?? [];
  if (who === undefined) return by;
  return `${COMMAND_LINE.test(who) ? "gsv" : who}${token === "" ? "" : ` (token ${token})`}`;
}
