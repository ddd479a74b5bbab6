/** Guards this isolate's console. A separate module, so that it runs before the libraries load. */
import { guard } from "./console-guard.ts";

guard(console);
