import { describe, expect, test } from "vitest";
import { asked, assistant, from, system, told, user } from "../../../test/support/rehearsal.ts";
import { rehearsalModel } from "./rehearsal-model.ts";

const model = rehearsalModel();
const say = async (...messages: Parameters<typeof asked>[0] & object) =>
  (await told(model, asked(messages))).text;

const sent = {
  role: "assistant" as const,
  content: [{ type: "tool-call" as const, toolCallId: "call_1", toolName: "sessions_send", input: {} }],
};
const pingPong = system('To end the exchange, reply exactly "REPLY_SKIP".');
const announcing = system('To stay silent, reply exactly "ANNOUNCE_SKIP".');

describe("messages from another session", () => {
  test("are acknowledged in their language, and executed if they are understood", async () => {
    expect(await say(from("agent:main:main", "The door is open."))).toBe("Noted: “The door is open.”");
    expect(await say(from("agent:main:main", "门开着"))).toBe("收到：「门开着」。");
    expect(await say(from("agent:main:main", "repeat 1, 2, 3"))).toBe("1, 2, 3");
  });

  test("the second turn of an exchange has nothing to add", async () => {
    const first = [from("a", "The door is open."), assistant("Noted: “The door is open.”")];
    expect(await say(pingPong, ...first, from("a", "Thank you."))).toBe("REPLY_SKIP");
    expect(await say(pingPong, user("tell b that it rains"), sent, from("b", "Good to know."))).toBe(
      "REPLY_SKIP",
    );
    expect(await say(pingPong, from("a", "The door is open."))).toBe("Noted: “The door is open.”");
  });

  test("two rehearsal models stop talking at some point, whatever they receive", async () => {
    let text = "The door is open.";
    const heard = { a: [user("tell b that the door is open"), sent], b: [] as ReturnType<typeof from>[] };
    for (const [self, other] of [
      ["b", "a"],
      ["a", "b"],
      ["b", "a"],
    ] as const) {
      if (text === "REPLY_SKIP") break;
      const turns = [...heard[self], from(other, text)];
      text = await say(...turns);
      heard[self].splice(0, heard[self].length, ...turns, assistant(text));
    }
    expect(text).toBe("REPLY_SKIP");
  });

  test("a second question of the same session is answered as a question", async () => {
    const first = [from("a", "repeat 1, 2"), assistant("1, 2")];
    expect(await say(...first, from("a", "repeat 1, 2, 3"))).toBe("1, 2, 3");
    expect(await say(...first, from("a", "It rains."))).toBe("Noted: “It rains.”");
  });

  test("nothing is announced unless it was requested", async () => {
    const step = user("Announce step.");
    expect(await say(announcing, from("a", "It rains."), assistant("Noted."), step)).toBe("ANNOUNCE_SKIP");
    expect(await say(announcing, from("a", "Announce that it rains."), assistant("It rains."), step)).toBe(
      "It rains.",
    );
    expect(await say(announcing, from("a", "宣布下雨了"), assistant("下雨了。"), step)).toBe("下雨了。");
  });

  test("a late reply is reported", async () => {
    const told = (reply: string) =>
      `The session agent:support:main, which you sent a message to, has ended its turn.\nYour message: x\nStatus: completed successfully\nResult (untrusted). Data.\n~~~\n${reply}\n~~~\n\nNext: go on.`;
    const before = [user("tell agent:support:main that it rains"), sent];
    expect(await say(...before, from("agent:support:main", told("Noted.")))).toBe(
      "agent:support:main has answered: Noted.",
    );
    expect(await say(...before, from("agent:support:main", told("**Rain**: wet.\n\n- cold")))).toBe(
      "agent:support:main has answered:\n\n> **Rain**: wet.\n>\n> - cold",
    );
    expect(await say(user("告诉 support 下雨了"), sent, from("support", told("好的")))).toBe(
      "agent:support:main 后来回答：好的",
    );
    const exchange =
      "Your exchange with the session agent:support:main has ended.\nYour message: x\nFirst reply (untrusted). Data.\n~~~\nNoted.\n~~~";
    expect(await say(...before, from("agent:support:main", exchange))).toContain(
      "agent:support:main has answered:",
    );
  });

  test("a helper gets its task in the words of a spawn, and does only that", async () => {
    const helper = system("# Subagent\n\nYou are a sub-agent (role: leaf, depth: 1), spawned for a task.");
    const first = (task: string) =>
      `[Subagent Context] You are running as a sub-agent (depth 1/1).\n\n[Attachments] 1 file.\n\n[Subagent Task]: ${task}`;
    expect(await say(helper, user(first("repeat 1, 2, 3")))).toBe("1, 2, 3");
    expect(await say(helper, user(first("Gardens of Kyoto")))).toMatch(/^\*\*Gardens of Kyoto\*\*: /);
    expect(await say(helper, from("agent:main:main", first("京都的花园"), "sessions_spawn"))).toMatch(
      /^\*\*京都的花园\*\*：/,
    );
  });

  test("the result of a helper that a person spawned for the session is reported", async () => {
    const ended =
      "A session that you spawned has ended: subagent:1\nStatus: completed successfully\n```\nit\n```";
    expect(await say(from("subagent:1", ended, "sessions_spawn"))).toBe(
      "The helper is back:\n\n1. **subagent:1** · it",
    );
  });

  test("a helper does something with any task", async () => {
    const helper = system("You are a sub-agent. Do the task and report.");
    expect(await say(helper, user("Gardens of Kyoto in autumn"))).toMatch(
      /^\*\*Gardens of Kyoto in autumn\*\*: /,
    );
    const parent = system("You can spawn a subagent.");
    expect(await say(parent, user("Gardens of Kyoto"))).toMatch(/^I am the rehearsal model/);
    expect(await say(helper, user("describe Kyoto"))).not.toContain("rehearsal model");
    expect(await say(from("a", "京都秋天的花园", "sessions_spawn"))).toMatch(/^\*\*京都秋天的花园\*\*：/);
  });
});
