import { ActionBarPrimitive, MessagePrimitive, useAuiState } from '@assistant-ui/react'
import { Braces, Columns2, CornerDownRight, FileDiff, Info, RefreshCw } from 'lucide-react'
import { memo, useMemo, useSyncExternalStore } from 'react'
import type { Answer, Message } from '@/api/types'
import { ApprovalCard } from '@/conversation/approvals/ApprovalCard'
import { Questions } from '@/conversation/approvals/Questions'
import { MarkdownLink, outside } from '@/conversation/markdown/links'
import { Branches } from '@/conversation/messages/Branches'
import { useAround } from '@/conversation/messages/context'
import { FileChip } from '@/conversation/messages/FileChip'
import { Plan } from '@/conversation/messages/Plan'
import { Progress } from '@/conversation/messages/Progress'
import { askedInside, type Block, blocksOf, type CallBlock, type Source, textOf } from '@/conversation/messages/parts'
import { ReadAloud } from '@/conversation/messages/ReadAloud'
import { Reasoning } from '@/conversation/messages/Reasoning'
import { Text } from '@/conversation/messages/Text'
import { CopyMessage, DeleteMessage, Fork } from '@/conversation/messages/UserMessage'
import { openPanel } from '@/conversation/panel/content'
import { isTool } from '@/conversation/tools/call'
import { ReadOnlyCard } from '@/conversation/tools/ReadOnlyCard'
import { ToolCard } from '@/conversation/tools/ToolCard'
import { useAnswer, useApproval } from '@/data/approvals'
import { agentName } from '@/lists/agents'
import { ChangedFiles, Findings } from '@/projects/links'
import { text } from '@/text'
import { IconButton } from '@/ui/Button'
import { spent } from '@/ui/format'
import { Failed } from '@/ui/States'
import { notifyError } from '@/ui/toasts'

/** A model's response. */
export function AssistantMessage() {
  const { find, live } = useAround()
  const id = useAuiState((state) => state.message.id)
  const message = find(id)
  const isLive = live !== null && (live === id || !message)
  return (
    <MessagePrimitive.Root className="group/message pt-2" aria-busy={isLive}>
      <h3 className="sr-only">{text.message.response}</h3>
      {message && <Blocks message={message} live={isLive} />}
      {isLive && <Progress message={message} />}
      {message && !isLive && <ChangedFiles message={message} />}
      {message && !isLive && <Foot message={message} />}
    </MessagePrimitive.Root>
  )
}

const Blocks = memo(function Blocks({ message, live }: { message: Message; live: boolean }) {
  const blocks = useMemo(() => blocksOf(message), [message])
  return blocks.map((block) => <BlockView key={block.key} block={block} live={live} status={message.status} />)
})

function BlockView({ block, live, status }: { block: Block; live: boolean; status: Message['status'] }) {
  const waits = status === undefined || status === 'streaming' // undefined: not loaded from the server yet
  switch (block.kind) {
    case 'text':
      return <Text text={block.text} streaming={live && block.open} />
    case 'reasoning':
      return <Reasoning content={block.text} thinking={live && block.open} />
    case 'call':
      return (
        <>
          <CallView block={block} live={live} status={status} />
          {waits && block.call.state === 'asked' && <ApprovalPrompt id={block.call.approvalId} />}
          {waits && askedInside(block).map((call) => <ApprovalPrompt key={call.id} id={call.approvalId} />)}
        </>
      )
    case 'read-only':
      return <ReadOnlyCard calls={block.calls} />
    case 'file':
      return (
        <div className="my-2">
          <FileChip url={block.url} name={block.name} mediaType={block.mediaType} size={block.size} />
        </div>
      )
    case 'sources':
      return <Sources sources={block.sources} />
    case 'plan':
      return <Plan entries={block.entries} />
    case 'findings':
      return <Findings findings={block.findings} />
    case 'subagent':
      return (
        <Reasoning
          content={block.text}
          thinking={false}
          title={block.thought ? text.message.reasoningOf(block.agent) : block.agent}
        />
      )
    case 'steer':
      return (
        <div className="my-3 flex justify-end gap-2">
          <CornerDownRight size={16} aria-label={text.message.steered} className="mt-2.5 shrink-0 text-faint" />
          <div className="max-w-[85%] rounded-2xl rounded-br-md bg-hover px-4 py-2.5 whitespace-pre-wrap">
            {block.text}
          </div>
        </div>
      )
    case 'questions':
      return waits && <ApprovalPrompt id={block.approvalId} />
    case 'note':
      return block.text ? (
        <p className="my-2 flex items-start gap-2 text-sm text-muted">
          <Info size={15} aria-hidden className="mt-0.5 shrink-0" />
          {block.text}
        </p>
      ) : null
  }
}

function Sources({ sources }: { sources: readonly Source[] }) {
  return (
    <section aria-label={text.message.sources} className="mt-3 border-t border-line pt-2 text-sm text-muted">
      <ol className="list-inside list-decimal space-y-0.5 marker:text-faint">
        {sources.map(({ url, title }) => (
          <li key={url} className="truncate">
            <MarkdownLink href={url}>{title || url}</MarkdownLink>
            {title && outside(url) && <span className="text-faint"> {outside(url)?.host}</span>}
          </li>
        ))}
      </ol>
    </section>
  )
}

/** A call, with the blocks of its sub-agent inside its card. Approvals are outside the card, because it can be collapsed. */
function CallView({ block, live, status }: { block: CallBlock; live: boolean; status: Message['status'] }) {
  const { call, inner } = block
  const ended = !live && status !== 'streaming'
  if (inner.length === 0) return <ToolCard call={call} live={live} ended={ended} />
  const inside = inner.map((one) =>
    one.kind === 'call' ? (
      <CallView key={one.key} block={one} live={live} status={status} />
    ) : (
      <BlockView key={one.key} block={one} live={live} status={status} />
    ),
  )
  return <ToolCard call={call} live={live} ended={ended} inside={inside} />
}

/** An open approval or question. Render nothing once it is answered. */
function ApprovalPrompt({ id }: { id: string }) {
  const { session, replaying } = useAround()
  const { conversation } = useSyncExternalStore(session.subscribe, session.get)
  const { approval, error, refetch } = useApproval(session.id, id, conversation?.last_seq)
  const give = useAnswer()
  if (replaying) return null
  if (!approval) return error && <Failed error={error} retry={() => void refetch()} className="my-3" />
  const answer = (content: Answer) => give(id, content).then(() => session.answered())
  return approval.questions ? (
    <Questions approval={approval} answer={answer} />
  ) : (
    <ApprovalCard approval={approval} answer={answer} />
  )
}

const ENDS = text.message.ends

function Foot({ message }: { message: Message }) {
  const { session, live, replaying, showRaw } = useAround()
  const facts = message.metadata
  if (message.status === 'streaming') return null // the run is waiting for an answer
  const end = ENDS[message.status ?? ''] ?? ENDS[facts?.finish_reason ?? '']
  return (
    <div className="mt-1 flex min-h-8 flex-wrap items-center gap-x-1.5 gap-y-0.5 text-xs text-faint">
      <Facts message={message} />
      {end && <span className="rounded-md bg-warn-soft px-1.5 py-0.5 font-medium text-warn">{end}</span>}
      {!replaying && (
        <>
          <ActionBarPrimitive.Root className="flex items-center gap-0.5 transition-opacity group-focus-within/message:opacity-100 group-hover/message:opacity-100 first:-ml-2 max-md:-ml-2 md:opacity-0 in-[.last-message]:opacity-100!">
            <CopyMessage />
            {live === null && 'speechSynthesis' in window && <ReadAloud markdown={textOf(message)} />}
            {live === null && (
              <IconButton
                label={text.message.regenerate}
                onClick={() => session.regenerate(message.id).catch(notifyError)}
              >
                <RefreshCw size={15} aria-hidden />
              </IconButton>
            )}
            {live === null && (
              <IconButton
                label={text.another.title}
                aria-haspopup="dialog"
                onClick={() => openPanel({ kind: 'another', session, message })}
              >
                <Columns2 size={15} aria-hidden />
              </IconButton>
            )}
            <Fork id={message.id} />
            {message.run && message.parts.some(isTool) && (
              <IconButton
                label={text.changes.show}
                aria-haspopup="dialog"
                onClick={() =>
                  openPanel({ kind: 'changes', conversation: session.id, message: message.stored_id ?? message.id })
                }
              >
                <FileDiff size={15} aria-hidden />
              </IconButton>
            )}
            <IconButton label={text.message.raw} onClick={() => showRaw(message)}>
              <Braces size={15} aria-hidden />
            </IconButton>
            {live === null && <DeleteMessage message={message} />}
          </ActionBarPrimitive.Root>
          <Branches id={message.stored_id ?? message.id} />
        </>
      )}
    </div>
  )
}

/** The agent and model that wrote a response, its duration and its cost. */
function Facts({ message }: { message: Message }) {
  const steps = message.metadata?.steps ?? []
  const ms = steps.reduce((sum, step) => sum + (step.ms ?? 0), 0) // imported messages may have no duration
  const cost = steps.reduce((sum, step) => sum + (step.cost ?? 0), 0)
  const unpriced = steps.filter((step) => step.cost === null).length
  const { agent, model } = message.metadata ?? {}
  const facts = [
    agent && agentName(agent),
    model,
    ms > 0 && text.time.seconds(ms / 1_000),
    cost > 0 && spent(cost, unpriced),
  ].filter(Boolean)
  if (!facts.length) return null
  return (
    <p className="min-w-0 break-words">
      <span className="sr-only">{text.message.writtenBy}</span>
      {facts.join(' · ')}
    </p>
  )
}
