/** Who acts, as the audit writes it. PURE. */

/** Blanks of each width and characters that are not seen: a name can't be split by them, or look like another. */
const UNSEEN = /[\s\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]/gu;
export const plainName = (id: string): string => id.replace(UNSEEN, "_").slice(0, 128);
/** A client, node or channel with its token. It chose its name, so nothing in the name may look like another part of the text. */
export const actorText = (mode: string, id: string, tokenId: string): string => `${mode}:${plainName(id)} token:${tokenId}`;
