import { clsx } from 'clsx'
import { Check, ChevronDown, Copy, CornerLeftUp, FolderOpen, GitFork } from 'lucide-react'
import { type ReactNode, useId, useState } from 'react'
import { Link } from 'wouter'
import type { Conversation } from '@/api/types'
import { useTitleOf } from '@/data/approvals'
import { useProjects } from '@/data/projects'
import { AgentMark } from '@/lists/AgentMark'
import { agentName, agentOf } from '@/lists/agents'
import { originOf } from '@/lists/rows'
import { fileHref } from '@/projects/places'
import { text } from '@/text'
import { useCopy } from '@/ui/copy'
import { moment, span } from '@/ui/format'

/**
 * The facts of a conversation below its title: agent, model, folder, dates, and the command that resumes it in a terminal. Phones show
 * agent and model, and the others on request.
 */
export function Facts({ conversation }: { conversation: Conversation }) {
  const [open, setOpen] = useState(false)
  const id = useId()
  const agent = agentOf(conversation)
  const model = conversation.model || conversation.last_model
  return (
    <div className="border-b border-line px-3 text-xs text-muted sm:px-6">
      <button
        type="button"
        aria-expanded={open}
        aria-controls={id}
        onClick={() => setOpen(!open)}
        className="flex min-h-11 w-full cursor-pointer items-center gap-2 text-left md:hidden"
      >
        <AgentMark agent={agent} />
        <span className="min-w-0 grow truncate">{[agentName(agent), model].filter(Boolean).join(' · ')}</span>
        <span className="shrink-0">{text.facts.details}</span>
        <ChevronDown size={14} aria-hidden className={clsx('shrink-0 transition-transform', open && 'rotate-180')} />
      </button>
      <div
        id={id}
        className={clsx('min-w-0 pb-3 md:flex md:min-h-10 md:items-center md:gap-4 md:py-1', !open && 'max-md:hidden')}
      >
        <dl className="flex min-w-0 grow flex-wrap items-center gap-x-4 gap-y-1 max-md:flex-col max-md:items-stretch">
          <Fact name={text.facts.agent}>
            <span className="flex items-center gap-1.5">
              <AgentMark agent={agent} />
              <span>{agentName(agent)}</span>
            </span>
          </Fact>
          {model && <Fact name={text.facts.model}>{model}</Fact>}
          <Place conversation={conversation} />
          <Fact name={text.facts.dates}>
            <span title={`${moment(conversation.created_at)} – ${moment(conversation.updated_at)}`}>
              {span(conversation.created_at, conversation.updated_at)}
            </span>
          </Fact>
          <Origin conversation={conversation} />
          {conversation.parent && <Parent id={conversation.parent} />}
          {conversation.forked_from && <Source conversation={conversation} id={conversation.forked_from} />}
        </dl>
        {conversation.resume && <Resume command={conversation.resume} />}
      </div>
    </div>
  )
}

/** A fact. On wide screens, its name is only for screen readers. */
function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className="flex min-w-0 items-center gap-2">
      <dt className="w-16 shrink-0 text-faint md:sr-only">{name}</dt>
      <dd className="min-w-0 truncate max-md:break-words max-md:whitespace-normal">{children}</dd>
    </div>
  )
}

const LINK = 'flex min-w-0 items-center gap-1 rounded-md underline-offset-2 hover:underline max-md:min-h-11'

/** The conversation's folder, as a link to the files of its project if the project has a folder. */
function Place({ conversation }: { conversation: Conversation }) {
  const project = useProjects().find(({ id }) => id === conversation.project)
  const folder = conversation.directory || String(conversation.origin?.directory ?? '')
  if (project?.root_path) {
    return (
      <Fact name={text.facts.folder}>
        <Link
          href={fileHref(project.id)}
          title={folder || project.root_path}
          aria-label={text.files.ofConversation(project.name)}
          className={LINK}
        >
          <FolderOpen size={13} aria-hidden className="shrink-0" />
          <span className="truncate">{project.name}</span>
        </Link>
      </Fact>
    )
  }
  if (!folder) return null
  return (
    <Fact name={text.facts.folder}>
      <span title={folder} className="flex items-center gap-1">
        <FolderOpen size={13} aria-hidden className="shrink-0" />
        <span className="max-w-64 truncate max-md:max-w-none" dir="rtl">
          <bdi>{folder}</bdi>
        </span>
      </span>
    </Fact>
  )
}

/** A link from a sub-agent's conversation back to the one that started it. */
function Parent({ id }: { id: string }) {
  const title = useTitleOf(id)
  return (
    <Fact name={text.facts.parent}>
      <Link href={`/c/${id}`} title={text.children.back} className={LINK}>
        <CornerLeftUp size={13} aria-hidden className="shrink-0" />
        <span className="max-w-56 truncate">{text.children.parent(title)}</span>
      </Link>
    </Fact>
  )
}

/** A link to the conversation from which this one was forked here, or copied by another program. */
function Source({ conversation, id }: { conversation: Conversation; id: string }) {
  const title = useTitleOf(id)
  const words = conversation.origin ? text.facts.copied : text.facts.forked
  return (
    <Fact name={text.facts.source}>
      <Link href={`/c/${id}`} className={LINK}>
        <GitFork size={13} aria-hidden className="shrink-0" />
        <span className="max-w-56 truncate">{words(title)}</span>
      </Link>
    </Fact>
  )
}

/** The file from which the conversation was imported. */
function Origin({ conversation }: { conversation: Conversation }) {
  const origin = originOf(conversation)
  const path = String(conversation.origin?.path ?? '')
  if (!origin) return null
  return (
    <Fact name={text.facts.imported}>
      <span title={path}>
        {origin}
        {path && <span className="sr-only">, {path}</span>}
      </span>
    </Fact>
  )
}

/** The command that resumes the conversation in a terminal, with a button that copies it. */
function Resume({ command }: { command: string }) {
  const { copied, copy } = useCopy()
  return (
    <div className="flex min-w-0 shrink items-center rounded-lg border border-line bg-sunken pl-2.5 max-md:mt-2 md:max-w-[40%]">
      <code
        title={command}
        className="min-w-0 grow truncate font-mono max-md:py-1 max-md:break-all max-md:whitespace-normal"
      >
        {command}
      </code>
      <button
        type="button"
        aria-label={text.facts.copyResume(copied ? text.common.copied : text.facts.resume)}
        title={text.facts.resumeAbout}
        onClick={() => copy(command)}
        className="flex min-h-8 shrink-0 cursor-pointer items-center gap-1.5 rounded-lg px-2.5 font-medium text-ink hover:bg-hover max-md:min-h-11"
      >
        {copied ? <Check size={14} aria-hidden /> : <Copy size={14} aria-hidden />}
        {copied ? text.common.copied : text.facts.resume}
      </button>
      <span role="status" className="sr-only">
        {copied && text.facts.resumeCopied}
      </span>
    </div>
  )
}
