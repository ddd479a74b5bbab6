/** The contract of every channel, run on the Discord channel. */
import { channelContract, type Person, type Side } from "../../kit/test/contract.ts";
import { Stage } from "../../kit/test/stage.ts";
import { dmOf, FakeDiscord } from "../../fakes/discord/fake-discord.ts";
import { stagedWorker } from "./world.ts";

async function open(): Promise<Side> {
  const discord = await new FakeDiscord().listen();
  const stage = await new Stage().open(await stagedWorker());
  const people: string[] = [];
  return {
    stage,
    async start() {
      await stage.call("start", { accountId: "default", config: { token: discord.token, apiBase: discord.api } });
      await stage.statusWhere("connected", ({ connected }) => connected);
      // The account reports its state by itself too.
      await stage.until("the gateway is told", () => stage.gateway().states.some(({ connected }) => connected));
    },
    async person(): Promise<Person> {
      const id = String(400_000_000_000_100_000 + people.length * 1_000);
      const username = `person${people.push(id)}`;
      const user = { id, username, discriminator: "0", global_name: "Someone Particular", avatar: null };
      const channel = dmOf(id);
      const find = (messageId: string) => discord.messages.get(channel)?.find((message) => message.id === messageId);
      const rest = (method: string, path: string) =>
        discord.log.filter((note) => note.kind === "rest" && note["method"] === method && String(note["path"]).startsWith(path));
      return {
        peer: { kind: "dm", id },
        async say(content, { replyTo } = {}) {
          const target = replyTo === undefined ? undefined : find(replyTo);
          return discord.say({ channel, user, content, ...(target ? { replyTo: target } : {}) }).id;
        },
        async again(messageId) {
          discord.gateway.dispatch("MESSAGE_CREATE", find(messageId));
        },
        // The fake Discord counts a message as acknowledged when the stream position moves.
        async told(messageId) {
          await stage.until("it was kept", () => stage.gateway().calls.some(({ message }) => message.id === messageId));
        },
        shown: () =>
          discord.sent(channel).map((message) => {
            const reference = message["message_reference"] as { message_id?: string } | null | undefined;
            return {
              id: message.id,
              text: message.content,
              ...(reference?.message_id === undefined ? {} : { replyTo: reference.message_id }),
            };
          }),
        loseAnswer: () => discord.loseAnswers(`POST /channels/${channel}/messages`),
        refuse: () => discord.refuse(channel, 403, 50007),
        async sayFile(name, bytes) {
          return discord.say({ channel, user, attachments: [discord.upload(name, bytes, "text/plain")] }).id;
        },
        async file() {
          const [attachment] = (discord.sent(channel).at(-1)?.["attachments"] ?? []) as { text: string }[];
          return attachment && new TextEncoder().encode(attachment.text);
        },
        typing: () => rest("POST", `/channels/${channel}/typing`).map(() => true),
        reactions: () =>
          rest("PUT", `/channels/${channel}/messages/`).map(({ path }) => {
            const [, messageId = "", emoji = ""] = /messages\/(\d+)\/reactions\/([^/]+)/.exec(String(path)) ?? [];
            return { messageId, emoji: decodeURIComponent(emoji) };
          }),
      };
    },
    secrets: () => [discord.token, discord.token.slice(5), "Someone Particular", "somebody1", ...people],
    async close() {
      await stage.end();
      await discord.close();
    },
  };
}

channelContract({
  channel: "discord",
  maxTextChars: 2000,
  marked: "**bold** and [a link](https://example.org/x)",
  bringsBacklog: true,
  has: ["files", "reactions", "replies", "typing", "refusals"],
  open,
});
