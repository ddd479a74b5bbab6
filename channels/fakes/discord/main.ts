/**
 * Starts the fake by itself: `node channels/fakes/discord/main.ts [PORT]`. Give the Discord channel its address as `apiBase` and its
 * token, then drive it: `curl -d '[{"content":"hello"}]' ADDRESS/control/say`.
 */
import { FakeDiscord } from "./fake-discord.ts";

const fake = await new FakeDiscord().listen(Number(process.argv[2] ?? 0));
console.log(JSON.stringify({ apiBase: fake.api, token: fake.token, control: `${fake.origin}/control/` }));
