/**
 * Starts the fake alone: `node channels/fakes/discord/main.ts [PORT]`. Give the Discord channel its URL as `apiBase` and its
 * token, then control it: `curl -d '[{"content":"hello"}]' URL/control/say`.
 */
import { FakeDiscord } from "./fake-discord.ts";

const fake = await new FakeDiscord().listen(Number(process.argv[2] ?? 0));
console.log(JSON.stringify({ apiBase: fake.api, token: fake.token, control: `${fake.origin}/control/` }));
