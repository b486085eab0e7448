import type { Token, Tokens } from "marked";
import type { ReactNode } from "react";
import { Fragment, memo, useMemo } from "react";
import { CodeBlock, ShowMore } from "./code-block.tsx";
import { useOpened } from "./foldable.tsx";
import styles from "./markdown.module.css";
import type { LinkTargets, MarkdownPiece } from "./markdown-pieces.ts";
import {
  findLinkTargets,
  foldPieces,
  hiddenHost,
  parsePiece,
  shownText,
  splitMarkdown,
  targetsOf,
  unescapeEntities,
} from "./markdown-pieces.ts";
import { isBlank } from "./plain-text.ts";

/**
 * Markdown from models and other untrusted sources. Tokens become elements, and text is never interpreted as HTML.
 * Remote images become links, and links open only http, https and mail addresses. Nothing that the model reads is
 * hidden: definitions, titles and the targets of other links are shown as text. Only the beginning and end of a long
 * text are mounted.
 */
export const Markdown = memo(function Markdown({
  text,
  isOpen = false,
}: {
  readonly text: string;
  /** `true` while the text is still growing. Its last code block is not closed and is not highlighted. */
  readonly isOpen?: boolean;
}) {
  const isLong = text.length > longestMarkdown;
  const pieces = useMemo(() => (isLong ? [] : splitMarkdown(text)), [text, isLong]);
  const targets = useMemo(() => findLinkTargets(isLong ? "" : text), [text, isLong]);
  const [step, setStep] = useOpened(`pieces ${text.slice(0, 200)}`);
  const { head, hidden, tail } = useMemo(() => foldPieces(pieces, step), [pieces, step]);
  if (isLong) return <CodeBlock text={text} />;
  const show = (piece: MarkdownPiece) => (
    <Piece
      key={piece.at}
      text={piece.text}
      code={piece.code}
      targets={JSON.stringify(targetsOf(piece.text, targets))}
      isOpen={isOpen && piece === pieces.at(-1)}
    />
  );
  return (
    <div className={styles.prose}>
      {head.map(show)}
      {hidden !== null && <ShowMore hidden={hidden} onClick={() => setStep(step + 1)} />}
      {tail.map(show)}
    </div>
  );
});

/** Longer texts are shown verbatim, because even splitting them would block the page. */
const longestMarkdown = 300_000;
/** More deeply nested quotes and lists are shown verbatim. */
const maxDepth = 12;

interface PieceProps {
  readonly text: string;
  readonly code: MarkdownPiece["code"];
  /** The link targets, as JSON. */
  readonly targets: string;
  readonly isOpen: boolean;
}

/** Memoized by its source, so that a growing answer parses and renders only its last piece again. */
const Piece = memo(
  function Piece({ text, code, targets, isOpen }: PieceProps) {
    const tokens = useMemo(
      () => (code === null ? parsePiece(text, JSON.parse(targets) as LinkTargets) : null),
      [text, code, targets],
    );
    if (tokens !== null) return renderBlocks(tokens, isOpen, 0);
    return (
      <CodeBlock
        text={code?.text ?? text}
        language={code?.language ?? ""}
        isOpen={isOpen && code?.isClosed !== true}
      />
    );
  },
  (before, now) => before.text === now.text && before.targets === now.targets && before.isOpen === now.isOpen,
);

function renderBlock(token: Token, key: number, isOpen: boolean, depth = 0): ReactNode {
  if (depth > maxDepth) return <p key={key}>{token.raw}</p>;
  // A quote or an item has a single direction. The browser derives it from nested text that sets no direction of its
  // own.
  const direction = depth === 0 ? { dir: "auto" } : {};
  switch (token.type) {
    case "space":
      return null;
    case "heading": {
      const Heading = `h${Math.min(6, (token as Tokens.Heading).depth + 2)}` as "h3";
      return (
        <Heading key={key} {...direction}>
          {renderInline(token.tokens)}
        </Heading>
      );
    }
    case "paragraph":
      return (
        <p key={key} {...direction}>
          {renderInline(token.tokens)}
        </p>
      );
    case "text":
      return (
        <Fragment key={key}>{token.tokens === undefined ? token.text : renderInline(token.tokens)}</Fragment>
      );
    case "code": {
      const { text, lang } = token as Tokens.Code;
      return (
        <CodeBlock
          key={key}
          text={text}
          language={lang ?? ""}
          isOpen={isOpen && !/\n\s*(?:```|~~~)\s*$/.test(token.raw)}
        />
      );
    }
    case "blockquote":
      return (
        <blockquote key={key} dir="auto">
          {renderBlocks(token.tokens, isOpen, depth + 1)}
        </blockquote>
      );
    case "list": {
      const { ordered, start, items } = token as Tokens.List;
      const List = ordered ? "ol" : "ul";
      return (
        <List key={key} {...(ordered && start !== "" && start !== 1 ? { start: Number(start) } : {})}>
          {items.map((item, index) => (
            <li key={index} dir="auto">
              {renderBlocks(item.tokens, isOpen, depth + 1)}
            </li>
          ))}
        </List>
      );
    }
    case "table":
      return renderTable(token as Tokens.Table, key);
    case "hr":
      return <hr key={key} />;
    case "checkbox":
      return renderCheckbox(token as Tokens.Checkbox, key);
    default:
      return (
        <p key={key} {...direction}>
          {token.raw}
        </p>
      );
  }
}

function renderBlocks(tokens: readonly Token[] | undefined, isOpen: boolean, depth: number): ReactNode {
  return (tokens ?? []).map((token, index) => renderBlock(token, index, isOpen, depth));
}

function renderCheckbox({ checked }: Tokens.Checkbox, key: number): ReactNode {
  return (
    <input key={key} type="checkbox" checked={checked} disabled aria-label={checked ? "done" : "to do"} />
  );
}

function renderTable({ header, rows, align }: Tokens.Table, key: number): ReactNode {
  const side = (index: number) => (align[index] === null ? {} : { "data-align": align[index] });
  return (
    <div key={key} className={styles.table}>
      <table>
        <thead>
          <tr>
            {header.map((cell, index) => (
              <th key={index} dir="auto" {...side(index)}>
                {renderInline(cell.tokens)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((cells, row) => (
            <tr key={row}>
              {cells.map((cell, index) => (
                <td key={index} dir="auto" {...side(index)}>
                  {renderInline(cell.tokens)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function renderInline(tokens: readonly Token[] | undefined, depth = 0): ReactNode {
  return (tokens ?? []).map((token, key) => {
    if (depth > maxDepth) return <Fragment key={key}>{token.raw}</Fragment>;
    switch (token.type) {
      case "strong":
        return <strong key={key}>{renderInline(token.tokens, depth + 1)}</strong>;
      case "em":
        return <em key={key}>{renderInline(token.tokens, depth + 1)}</em>;
      case "del":
        return <del key={key}>{renderInline(token.tokens, depth + 1)}</del>;
      case "codespan":
        return <code key={key}>{token.text}</code>;
      case "br":
        return <br key={key} />;
      case "checkbox":
        return renderCheckbox(token as Tokens.Checkbox, key);
      case "link":
        return (
          <SafeLink key={key} link={token as Tokens.Link}>
            {renderInline(token.tokens, depth + 1)}
          </SafeLink>
        );
      case "image":
        return (
          <SafeLink key={key} link={token as Tokens.Image}>
            {token.text}
          </SafeLink>
        );
      case "escape":
      case "text":
        return (
          <Fragment key={key}>
            {"tokens" in token && token.tokens !== undefined
              ? renderInline(token.tokens, depth + 1)
              : unescapeEntities(token.text)}
          </Fragment>
        );
      default:
        return <Fragment key={key}>{token.raw}</Fragment>;
    }
  });
}

interface SafeLinkProps {
  readonly link: Tokens.Link | Tokens.Image;
  readonly children: ReactNode;
}

/**
 * A link, followed by what its text does not say: a title, another host, or the target if the link cannot be clicked.
 */
function SafeLink({ link: { href, title, tokens }, children }: SafeLinkProps) {
  const isSafe = /^(?:https?:|mailto:)/i.test(href);
  const text = shownText(tokens);
  const isHidden = isBlank(text) || (!isSafe && !text.includes(href));
  const notes = [isHidden ? href : isSafe ? hiddenHost(href, text) : null, title].filter((note) => !!note);
  const shown = (
    <>
      {children}
      {notes.length > 0 && ` (${notes.join(", ")})`}
    </>
  );
  if (!isSafe) return shown;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow" title={href}>
      {shown}
    </a>
  );
}
