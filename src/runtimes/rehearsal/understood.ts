import type { Act } from "./acts.ts";
import * as act from "./acts.ts";
import * as own from "./own-acts.ts";
import { comma, end, gap, number, pattern, space, target, zhTarget } from "./patterns.ts";

/** One thing that the rehearsal model understands. `docs/rehearsal.md` is held against the list. */
export interface Understood {
  readonly id: string;
  /** What a person would say, in each language. */
  readonly examples: { readonly en: string; readonly zh: string };
  /** How such a request begins; the rest of it is what the act is about. */
  readonly begins: { readonly en: RegExp; readonly zh: RegExp };
  /** The tool that it takes; `null`: none. */
  readonly tool: string | null;
  readonly act: Act;
}

const helpers = "(?:helpers?|sub-?agents?|workers?)";
const zhHelpers = "(?:助手|帮手|子代理)";
const the = `(?:${gap}(?:the|my|your|all))?`;
const session = `(?:the${gap})?(?:session${gap})?`;

/** In this order: the first that fits is meant. */
export const understood: readonly Understood[] = [
  {
    id: "help",
    examples: { en: "what can you do", zh: "你能做什么" },
    begins: {
      en: pattern("(?:help|what can you do|what do you understand|who are you|what are you)", end),
      zh: pattern("(?:帮助|你能做什么|你会做什么|你会什么|你懂什么|你是谁|你是什么)", end),
    },
    tool: null,
    act: own.help,
  },
  {
    id: "list",
    examples: { en: "list the sessions", zh: "列出会话" },
    begins: {
      en: pattern(
        `(?:(?:list|show)(?:${gap}me)?${the}${gap}sessions|(?:which|what) sessions are there)`,
        end,
      ),
      zh: pattern("(?:(?:列出|显示|查看|看看)(?:所有|全部)?的?会话(?:列表)?|有哪些会话|会话列表)", end),
    },
    tool: "sessions_list",
    act: act.list,
  },
  {
    id: "read",
    examples: { en: "read the session support", zh: "读会话 support" },
    begins: {
      en: pattern(
        `(?:read|show|open)${the}${gap}(?:session|history of)${gap}(?:the${gap}session${gap})?`,
        target,
        end,
      ),
      zh: pattern(
        `(?:读取|读|阅读|打开|查看|看看|看)${space}会话${space}`,
        zhTarget.replace("(?=[\\s，,：:])", ""),
        end,
      ),
    },
    tool: "sessions_history",
    act: act.read,
  },
  {
    id: "ask",
    examples: { en: "ask support how many words this has and wait", zh: "问 support 现在怎么样并等待" },
    begins: {
      en: pattern(`ask${gap}${session}`, target, `[\\s,]{1,9}`),
      zh: pattern(`(?:问一下|问问|询问|问)${space}(?:会话${space})?`, zhTarget, comma),
    },
    tool: "sessions_send",
    act: act.ask,
  },
  {
    id: "tell",
    examples: { en: "tell support that the door is open", zh: "告诉 support 门开着" },
    begins: {
      en: pattern(`(?:tell|message|write to)${gap}${session}`, target, `[\\s,]{1,9}(?:that${gap})?`),
      zh: pattern(`(?:告诉|通知|转告|发消息给)${space}(?:会话${space})?`, zhTarget, comma),
    },
    tool: "sessions_send",
    act: act.tell,
  },
  {
    id: "helpers",
    examples: { en: "list the helpers", zh: "列出助手" },
    begins: {
      en: pattern(`(?:list|show)(?:${gap}me)?${the}${gap}${helpers}`, end),
      zh: pattern(`(?:列出|显示|查看|看看)(?:所有|全部)?的?${zhHelpers}`, end),
    },
    tool: "subagents",
    act: act.listHelpers,
  },
  {
    id: "stop",
    examples: { en: "stop the helper helper-1", zh: "停止助手 helper-1" },
    begins: {
      en: pattern(
        `(?:stop|kill|cancel)${the}(?:${gap}last)?${gap}(?:helper|sub-?agent)(?:${gap}${target})?`,
        end,
      ),
      zh: pattern(`(?:停止|停掉|终止|取消)(?:最后一个)?${zhHelpers}${space}(?:${zhTarget})?`, end),
    },
    tool: "subagents",
    act: act.stopHelper,
  },
  {
    id: "spawn",
    examples: {
      en: "spawn three helpers to describe the gardens of Kyoto and summarise",
      zh: "派三个助手去描述京都的花园并总结",
    },
    begins: {
      en: pattern(
        `(?:spawn|start|launch|send out)${gap}(?:(?<number>${number})${gap})?${helpers}\\b`,
        `(?:${gap}(?:to|for|who|that)\\b)?${comma}`,
      ),
      zh: pattern(
        `(?:派出|派|启动|生成|叫)${space}(?:(?<number>${number})${space})?(?:个|名|位)?小?${zhHelpers}`,
        `${space}[去来]?${comma}`,
      ),
    },
    tool: "sessions_spawn",
    act: act.spawn,
  },
  {
    id: "search",
    examples: { en: "search for Kyoto", zh: "搜索京都" },
    begins: {
      en: pattern(`search(?:${the}${gap}sessions)?(?:${gap}for)?[\\s:]{1,9}`),
      zh: pattern(`(?:搜索|搜一下|查找|检索)(?:一下)?(?:会话)?${comma}`),
    },
    tool: "session_search",
    act: act.search,
  },
  {
    id: "status",
    examples: { en: "status of support", zh: "support 的状态" },
    begins: {
      en: pattern(`(?:show${the}${gap})?(?:session${gap})?status(?:${gap}of${gap}${session}${target})?`, end),
      zh: pattern(`(?:查看|显示)?${space}(?:${zhTarget}${space}的)?(?:当前)?(?:会话)?状态`, end),
    },
    tool: "session_status",
    act: act.status,
  },
  {
    id: "use",
    examples: { en: 'use the tool weather with {"city": "Kyoto"}', zh: '用工具 weather {"city": "京都"}' },
    begins: {
      en: pattern(
        `(?:use|call|run)${gap}(?:the${gap})?tool${gap}(?<tool>[\\w.:/-]{1,128})(?:${gap}with\\b)?${comma}`,
      ),
      zh: pattern(`(?:使用|调用|用)${space}工具${space}(?<tool>[\\w.:/-]{1,128})${space}(?:参数)?${comma}`),
    },
    tool: null,
    act: act.useTool,
  },
  {
    id: "slow",
    examples: { en: "be slow for 5 seconds", zh: "慢 5 秒" },
    begins: {
      en: pattern(
        `be${gap}slow${gap}(?:for${gap})?(?<number>${number})${space}`,
        `(?<unit>milliseconds?|ms|minutes?|seconds?|s)`,
        end,
      ),
      zh: pattern(`慢慢?[来说]?${space}(?<number>${number})${space}(?<unit>毫秒|分钟|秒)钟?`, end),
    },
    tool: null,
    act: own.slow,
  },
  {
    id: "fail once",
    examples: { en: "fail once", zh: "失败一次" },
    begins: { en: pattern(`fail${gap}once`, end), zh: pattern("先?失败一次", end) },
    tool: null,
    act: own.failOnce,
  },
  {
    id: "fail",
    examples: { en: "fail with status 429", zh: "失败 429" },
    begins: {
      en: pattern(`fail(?:${gap}with(?:${gap}status)?${gap}(?<number>[45]\\d\\d))?`, end),
      zh: pattern(`失败${space}(?<number>[45]\\d\\d)?`, end),
    },
    tool: null,
    act: own.fail,
  },
  {
    id: "think",
    examples: { en: "think about the gardens of Kyoto", zh: "想一想京都的花园" },
    begins: {
      en: pattern(`think(?:${gap}(?:hard|carefully))?(?:${gap}about)?[\\s:]{1,9}`),
      zh: pattern(`(?:想一想|想想|思考一下|思考|考虑一下|考虑)${comma}`),
    },
    tool: null,
    act: own.think,
  },
  {
    id: "count",
    examples: { en: "count the words in one two three", zh: "统计字数：京都的花园" },
    begins: {
      en: pattern(
        `count${gap}(?:(?:up${gap})?to${gap}(?<number>${number})${end}|(?:the${gap})?words(?:${gap}(?:in|of))?[\\s:]{1,9})`,
      ),
      zh: pattern(
        `(?:数到${space}(?<number>${number})${end}|(?:数一下|数一数|统计一下|统计|数)(?:字数|词数)${comma})`,
      ),
    },
    tool: null,
    act: own.count,
  },
  {
    id: "repeat",
    examples: { en: "repeat good morning", zh: "重复 早上好" },
    begins: {
      en: pattern(`(?:repeat|say|echo)(?:${gap}after${gap}me)?[\\s:]{1,9}`),
      zh: pattern(`(?:重复|复述|跟我说|说)(?:一遍|一下)?${comma}`),
    },
    tool: null,
    act: own.repeat,
  },
  {
    id: "task",
    examples: { en: "describe the gardens of Kyoto", zh: "描述京都的花园" },
    begins: {
      en: pattern(
        "(?:describe|explain|summari[sz]e|write|draft|plan|compare|research|find|look into|check|review|name|tell me)",
        `[\\s:]{1,9}(?:about${gap})?`,
      ),
      zh: pattern(
        "(?:描述|解释|总结|写|起草|计划|规划|比较|研究|调查|检查|审查|介绍|告诉我)",
        `(?:一下)?${comma}`,
      ),
    },
    tool: null,
    act: own.task,
  },
];
