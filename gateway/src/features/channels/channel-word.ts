/** Until when the gateway's word counts that a message of an agent may leave (rule ST9). PURE. */

/** Long enough for a message that is sent at once, so that it costs no question of the channel. The kit's `wordMs` is the same. */
const WORD_MS = 2_000;

/** `askFrom` of a message that is handed over now. */
export const channelWord = (now: number, isStopped: boolean): number => (isStopped ? now : now + WORD_MS);
