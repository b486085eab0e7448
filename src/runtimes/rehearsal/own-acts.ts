import type { Act, Asked } from "./acts.ts";
import { inWords } from "./acts.ts";
import { ProviderFailure } from "./provider-failure.ts";
import { says } from "./reply.ts";
import { keyWords, numberIn, quoted, wordsOf } from "./words.ts";

/** What the rehearsal model does by itself. */

const whatIAm = {
  en: "I am the rehearsal model: offline, without a key, and I always answer the same.",
  zh: "我是排练模型：离线、不需要密钥，而且总是给出同样的回答。",
};
const howToGoOn = {
  en: "Say “what can you do” to see what I understand; for a real model, set a key such as ANTHROPIC_API_KEY or agents.<id>.model in skein.yaml.",
  zh: "说「你能做什么」可以看到我懂得什么；要用真正的模型，请设置密钥（例如 ANTHROPIC_API_KEY）或 skein.yaml 中的 agents.<id>.model。",
};

/** What it says where it understands nothing. */
export function unknown({ language, conversation }: Pick<Asked, "language" | "conversation">) {
  const said = quoted(conversation.request, language);
  const heard = inWords({ language }, `You said: ${said}.`, `你说：${said}。`);
  return says(`${whatIAm[language]} ${heard} ${howToGoOn[language]}`);
}

/** Each with the tool that it needs: `any` for one of whatever name, none for what it does by itself. */
const abilities = [
  [
    ["sessions_list", "list the sessions", "列出会话"],
    ["sessions_history", "read the session X", "读会话 X"],
    ["sessions_send", "tell X that … · ask X … and wait", "告诉 X … · 问 X …并等待"],
  ],
  [
    ["sessions_spawn", "spawn three helpers to … and summarise", "派三个助手去…并总结"],
    ["subagents", "list the helpers · stop the helper X", "列出助手 · 停止助手 X"],
  ],
  [
    ["session_search", "search for …", "搜索…"],
    ["session_status", "status", "状态"],
    ["any", "use the tool X with {…}", "用工具 X {…}"],
  ],
  [
    [
      null,
      "be slow for 5 seconds · fail · fail once · think about … · count the words in … · repeat … · describe …",
      "慢 5 秒 · 失败 · 失败一次 · 想一想… · 统计字数：… · 重复… · 描述…",
    ],
  ],
] as const;

export const help: Act = (asked) => {
  const title = inWords(asked, "I understand:", "我懂得：");
  const names = asked.conversation.tools.map(({ name }) => name);
  const isOffered = (tool: string | null) =>
    tool === null || (tool === "any" ? names.length > 0 : names.includes(tool));
  const lines = abilities.map((line) =>
    line.flatMap(([tool, en, zh]) => (isOffered(tool) ? [inWords(asked, en, zh)] : [])).join(" · "),
  );
  const known = lines.filter((line) => line !== "").map((line) => `- ${line}`);
  return says(`${whatIAm[asked.language]} ${title}\n${known.join("\n")}`);
};

const mostSlowMs = 600_000;

export const slow: Act = (asked) => {
  const { number, unit = "" } = asked.groups;
  const count = numberIn(number);
  if (count === null) return null;
  const each = /^(?:ms|milli|毫)/i.test(unit) ? 1 : /^(?:min|分)/i.test(unit) ? 60_000 : 1000;
  const spreadMs = Math.min(mostSlowMs, count * each);
  const seconds = spreadMs / 1000;
  const text = inWords(
    asked,
    `This answer was spread evenly over ${seconds} seconds, word by word, so that there was time to watch it, or to stop it.`,
    `这个回答均匀地用了 ${seconds} 秒，一个词一个词地说出来，这样就有时间看着它，或者让它停下。`,
  );
  return { ...says(text), spreadMs };
};

export const fail: Act = (asked) => {
  const status = numberIn(asked.groups.number) ?? 400;
  throw new ProviderFailure({
    status,
    message: inWords(asked, "The rehearsal model was asked to fail.", "排练模型按要求失败了。"),
  });
};

export const failOnce: Act = (asked) => {
  if (!asked.isFirstTime()) {
    return says(
      inWords(asked, "The first attempt failed, and this one did not.", "第一次失败了，这一次没有。"),
    );
  }
  throw new ProviderFailure({
    status: 503,
    message: inWords(
      asked,
      "The rehearsal model was asked to fail once; try again.",
      "排练模型按要求失败一次，请重试。",
    ),
  });
};

export const think: Act = (asked) => {
  const about = quoted(asked.rest, asked.language);
  const words = keyWords(asked.rest).join(", ");
  return {
    ...says(inWords(asked, `I have thought about ${about}.`, `我想过了${about}。`)),
    thinking: inWords(
      asked,
      `I am asked to think about ${about}. What stands out: ${words || "nothing"}. That is enough for an answer.`,
      `要我想一想${about}。值得注意的是：${words || "没有什么"}。这足够回答了。`,
    ),
  };
};

const mostCounted = 1000;

export const count: Act = (asked) => {
  if (asked.groups.number !== undefined) {
    const last = Math.min(mostCounted, Math.floor(numberIn(asked.groups.number) ?? 0));
    if (last < 1) return null;
    return says(Array.from({ length: last }, (_, index) => index + 1).join(", "));
  }
  const [words, characters] = [wordsOf(asked.rest).length, [...asked.rest.trim()].length];
  return says(
    inWords(
      asked,
      `${words} ${words === 1 ? "word" : "words"}, ${characters} ${characters === 1 ? "character" : "characters"}.`,
      `${words} 个词，${characters} 个字符。`,
    ),
  );
};

export const repeat: Act = (asked) => {
  const text = asked.rest.trim();
  return text === "" ? null : says(text);
};

/** A result that follows from the text of the task and from nothing else. */
export const task: Act = (asked) => {
  const about = asked.rest.trim();
  if (about === "") return null;
  const words = keyWords(about).join(", ");
  const size = wordsOf(about).length;
  return says(
    inWords(
      asked,
      `Done: ${quoted(about, "en", 120)}. It comes down to ${words || "very little"}, from ${size} ${size === 1 ? "word" : "words"}.`,
      `完成：${quoted(about, "zh", 120)}。要点：${words || "很少"}，共 ${size} 个词。`,
    ),
  );
};
