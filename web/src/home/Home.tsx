import { clsx } from 'clsx'
import { ArrowRight, FilePen, Hourglass, TriangleAlert } from 'lucide-react'
import { type ReactNode, useId } from 'react'
import { Link } from 'wouter'
import type { Approval, Run } from '@/api/types'
import { useApprovals, useTitleOf } from '@/data/approvals'
import { useConversations, useFailures } from '@/data/conversations'
import { type Edit, type Group, useEdits, useStats } from '@/data/stats'
import { Activity } from '@/home/Activity'
import { AgentMark } from '@/lists/AgentMark'
import { agentName, agentOf } from '@/lists/agents'
import { EVERYTHING } from '@/lists/filter'
import { titleOf } from '@/lists/rows'
import { text } from '@/text'
import { age, moment, spent } from '@/ui/format'
import { Loaded, type Query } from '@/ui/States'

const MOST = 6
const BY = ['project', 'model']

/** An overview of the archive below the composer of a new conversation: what waits, activity, costs, and what happened last. */
export default function Home() {
  return (
    <div className="mx-auto w-full max-w-5xl px-4 pt-2 pb-14 sm:px-6">
      <Waiting />
      <Activity />
      <div className="mt-9 grid gap-x-10 gap-y-9 lg:grid-cols-2">
        <Costs />
        <Recent />
        <Edits />
        <Failures />
      </div>
    </div>
  )
}

interface BlockProps<T, Item> {
  title: string
  query: Query<T>
  /** Return what the section lists. Without any, there is no section. */
  itemsOf: (data: T) => readonly Item[]
  /** A link to a view with more. */
  more?: { href: string; label: string }
  className?: string
  children: (items: readonly Item[]) => ReactNode
}

/** A section of the overview with the first items of a query. */
function Block<T, Item>({ title, query, itemsOf, more, className, children }: BlockProps<T, Item>) {
  const id = useId()
  if (query.data !== undefined && !itemsOf(query.data).length) return null
  return (
    <section aria-labelledby={id} className={clsx('min-w-0', className)}>
      <div className="mb-1.5 flex min-h-8 items-center justify-between gap-3">
        <h2 id={id} className="text-sm font-semibold">
          {title}
        </h2>
        {more && (
          <Link
            href={more.href}
            className="flex items-center gap-1 rounded text-xs text-muted hover:text-ink hover:underline max-md:min-h-11"
          >
            {more.label}
            <ArrowRight size={13} aria-hidden />
          </Link>
        )}
      </div>
      <Loaded query={query} rows={3}>
        {(data) => <ul>{children(itemsOf(data).slice(0, MOST))}</ul>}
      </Loaded>
    </section>
  )
}

const ROW = 'flex min-h-11 min-w-0 items-center gap-3 rounded-lg px-2 py-1.5 hover:bg-hover'

/** Two lines of text, of which the second one is small. */
function Lines({ first, second, title }: { first: ReactNode; second: ReactNode; title?: string }) {
  return (
    <span className="min-w-0 grow" title={title}>
      <span className="block truncate text-sm">{first}</span>
      <span className="block truncate text-xs text-muted">{second}</span>
    </span>
  )
}

/** The open approvals and questions. Render nothing if there are none. */
function Waiting() {
  const query = useApprovals(20_000)
  if (!query.data && !query.isFetched) return null // there are rarely any, and a placeholder here would move everything below
  return (
    <Block
      title={query.data ? text.home.waiting(query.data.length) : text.inbox.title}
      query={query}
      itemsOf={(approvals) => approvals}
      more={{ href: '/inbox', label: text.sidebar.inbox }}
      className="mb-8 rounded-2xl border border-warn/40 bg-warn-soft px-3 pt-1.5 pb-2"
    >
      {(approvals) => approvals.slice(0, 3).map((approval) => <Question key={approval.id} approval={approval} />)}
    </Block>
  )
}

function Question({ approval }: { approval: Approval }) {
  const title = useTitleOf(approval.conversation)
  return (
    <li>
      <Link href={`/c/${approval.conversation}`} className={ROW}>
        <Hourglass size={15} aria-hidden className="shrink-0 text-warn" />
        <Lines first={title || text.inbox.openConversation} second={approval.tool} />
        <Ago at={approval.asked_at} />
      </Link>
    </li>
  )
}

function Ago({ at }: { at: number }) {
  return (
    <span title={moment(at)} className="shrink-0 text-xs whitespace-nowrap text-muted">
      {age(at)}
    </span>
  )
}

/** The cost of the whole archive by project and by model. */
function Costs() {
  const query = useStats(0, BY)
  const more = { href: '/usage', label: text.home.allUsage }
  return (
    <>
      <Block title={text.home.costByProject} query={query} itemsOf={({ projects }) => costly(projects)} more={more}>
        {shares}
      </Block>
      <Block title={text.home.costByModel} query={query} itemsOf={({ models }) => costly(models)} more={more}>
        {shares}
      </Block>
    </>
  )
}

/** Return the groups with the highest cost first. */
function costly(groups: readonly Group[]): readonly Group[] {
  return [...groups].sort((one, other) => other.cost - one.cost || other.runs - one.runs)
}

/** Return a row for each group, with a bar for its share of the highest cost. */
function shares(groups: readonly Group[]): ReactNode {
  const most = groups[0]?.cost ?? 0
  return groups.map((group) => (
    <li key={group.name} className="px-2 py-1.5">
      <div className="flex items-baseline justify-between gap-4 text-sm">
        <span className="min-w-0 truncate" title={group.name}>
          {group.name || text.common.unknown}
        </span>
        <span className="shrink-0 tabular-nums">{spent(group.cost, group.unpriced_runs)}</span>
      </div>
      <div aria-hidden className="mt-1.5 h-1.5 overflow-hidden rounded-full bg-hover">
        <div className="h-full rounded-full bg-accent" style={{ width: `${most ? (100 * group.cost) / most : 0}%` }} />
      </div>
    </li>
  ))
}

function Recent() {
  const query = useConversations(EVERYTHING, { called: false })
  return (
    <Block title={text.home.recent} query={query} itemsOf={({ pages }) => pages[0]?.data ?? []}>
      {(recent) =>
        recent.map((conversation) => (
          <li key={conversation.id}>
            <Link href={`/c/${conversation.id}`} className={ROW}>
              <AgentMark agent={agentOf(conversation)} size="large" />
              <Lines
                first={titleOf(conversation)}
                second={[
                  agentName(agentOf(conversation)),
                  conversation.model || conversation.last_model,
                  (conversation.cost !== null || conversation.unpriced_runs > 0) &&
                    spent(conversation.cost, conversation.unpriced_runs),
                ]
                  .filter(Boolean)
                  .join(' · ')}
              />
              <Ago at={conversation.updated_at} />
            </Link>
          </li>
        ))
      }
    </Block>
  )
}

/** The files that agents changed last, each as a link to the message with the change. */
function Edits() {
  return (
    <Block title={text.home.edits} query={useEdits(MOST)} itemsOf={({ data }) => data}>
      {(edits) =>
        edits.map((edit) => (
          <li key={`${edit.message} ${edit.path} ${edit.tool} ${edit.at}`}>
            <Link href={`/c/${edit.conversation}#${edit.message}`} className={ROW}>
              <FilePen size={16} aria-hidden className="w-7 shrink-0 text-muted" />
              <Changed edit={edit} />
              <Ago at={edit.at} />
            </Link>
          </li>
        ))
      }
    </Block>
  )
}

function Changed({ edit }: { edit: Edit }) {
  const at = edit.path.replace(/[\\/]+$/, '').search(/[^\\/]*$/)
  const [folder, name] = [edit.path.slice(0, at), edit.path.slice(at)]
  return (
    <Lines
      title={edit.path}
      first={
        <>
          {name || edit.path}
          {Boolean(edit.added) && <span className="ml-1 text-xs text-good tabular-nums"> +{edit.added}</span>}
          {Boolean(edit.removed) && <span className="ml-1 text-xs text-danger tabular-nums"> −{edit.removed}</span>}
        </>
      }
      second={[agentName(edit.agent), folder].filter(Boolean).join(' · ')}
    />
  )
}

/** The last runs that failed or were interrupted. Render nothing if there are none. */
function Failures() {
  return (
    <Block title={text.home.failures} query={useFailures()} itemsOf={(runs) => runs}>
      {(runs) => runs.map((run) => <Failure key={run.id} run={run} />)}
    </Block>
  )
}

function Failure({ run }: { run: Run }) {
  const title = useTitleOf(run.conversation)
  const problem =
    run.error?.message || (run.status === 'interrupted' ? text.conversation.interrupted : text.tools.failed)
  return (
    <li>
      <Link href={`/c/${run.conversation}#${run.message}`} className={ROW}>
        <TriangleAlert size={16} aria-hidden className="w-7 shrink-0 text-danger" />
        <Lines first={title || text.inbox.openConversation} second={problem} title={problem} />
        <Ago at={run.ended_at ?? run.created_at} />
      </Link>
    </li>
  )
}
