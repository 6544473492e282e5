import {
  ArrowDownUp,
  Bot,
  ChartNoAxesColumn,
  ChevronDown,
  Contrast,
  FolderCog,
  FolderInput,
  FolderTree,
  Inbox,
  Info,
  Keyboard,
  KeyRound,
  Lightbulb,
  Link2,
  type LucideIcon,
  MessageSquare,
  Monitor,
  Moon,
  Plug,
  ShieldCheck,
  SquarePen,
  Sun,
  TextSearch,
  Wrench,
} from 'lucide-react'
import type { ReactNode } from 'react'
import { useLocation } from 'wouter'
import type { Conversation } from '@/api/types'
import { open } from '@/app/panels'
import { aim } from '@/conversation/target'
import { useConversations } from '@/data/conversations'
import type { Hit, Order } from '@/data/search'
import { written } from '@/keys/shortcuts'
import { originOf, titleOf } from '@/lists/rows'
import { fitness, pieces } from '@/search/query'
import { choose } from '@/theme/choice'
import { age } from '@/ui/words'

export interface Choice {
  key: string
  icon: ReactNode
  words: ReactNode
  keys?: string
  act: () => void
}

interface Group {
  name: string
  choices: Choice[]
}

interface Command {
  words: string
  icon: LucideIcon
  keys?: string
  to?: string
  act?: () => void
}

const PLACES = { text: '', tools: ', in a tool call', reasoning: ', in its reasoning' } as const

const COMMANDS: readonly Command[] = [
  { words: 'New conversation', icon: SquarePen, keys: 'N', to: '/' },
  { words: 'Inbox', icon: Inbox, keys: 'I', to: '/inbox' },
  { words: 'Settings: configuration', icon: FolderCog, to: '/settings' },
  { words: 'Settings: models', icon: Plug, to: '/settings/models' },
  { words: 'Settings: agents', icon: Bot, to: '/settings/agents' },
  { words: 'Settings: projects', icon: FolderTree, to: '/settings/projects' },
  { words: 'Settings: tools', icon: Wrench, to: '/settings/tools' },
  { words: 'Settings: permissions', icon: ShieldCheck, to: '/settings/permissions' },
  { words: 'Settings: tokens', icon: KeyRound, to: '/settings/tokens' },
  { words: 'Settings: shared pages', icon: Link2, to: '/settings/shares' },
  { words: 'Settings: import', icon: FolderInput, to: '/settings/import' },
  { words: 'Usage and cost', icon: ChartNoAxesColumn, to: '/settings/usage' },
  { words: 'About this server', icon: Info, to: '/settings/about' },
  { words: 'Appearance: as the system', icon: Monitor, act: () => choose('system') },
  { words: 'Appearance: light', icon: Sun, act: () => choose('light') },
  { words: 'Appearance: dark', icon: Moon, act: () => choose('dark') },
  { words: 'Appearance: high contrast', icon: Contrast, act: () => choose('contrast') },
  { words: 'Keyboard', icon: Keyboard, keys: '?', act: () => open('help') },
]

/** What was found, and what can be done about it. */
export interface Messages {
  hits: readonly Hit[]
  order: Order
  /** They have some of the words only, the best first. */
  loose: boolean
  /** Puts others first. */
  turn: (order: Order) => void
  /** Fetches more; null: all are here. */
  more: (() => void) | null
}

const MESSAGES = {
  newest: 'Messages',
  best: 'Messages, best first',
  meaning: 'Answers by meaning, nearest first',
}

/** What can be chosen for a query, in groups; without one the last conversations and all commands. */
export function useChoices(query: string, found: Messages, onClose: () => void): Group[] {
  const [, go] = useLocation()
  const recent = useConversations({ shelf: 'active', project: '' })
  const conversations = recent.data?.pages.flatMap((page) => page.data) ?? []

  const visit = (address: string) => {
    onClose()
    go(address)
  }
  const commands = ranked(COMMANDS, query, (command) => command.words)
  const titles = ranked(conversations, query, titleOf).slice(0, query ? 8 : 6)
  const groups: Group[] = [
    {
      name: 'Conversations',
      choices: titles.map((conversation) => ({
        key: `conversation ${conversation.id}`,
        icon: <Sign icon={MessageSquare} />,
        words: <Line text={titleOf(conversation)} aside={asideOf(conversation)} />,
        act: () => visit(`/c/${conversation.id}`),
      })),
    },
    {
      name: found.loose ? 'Messages with some of these words' : MESSAGES[found.order],
      choices: query ? messages(found, visit) : [],
    },
    { name: 'By meaning', choices: query && found.order !== 'meaning' ? [byMeaning(found.turn)] : [] },
    {
      name: 'Commands',
      choices: commands.map((command) => ({
        key: `command ${command.words}`,
        icon: <Sign icon={command.icon} />,
        words: <Line text={command.words} />,
        keys: command.keys && written(command.keys),
        act: () => {
          onClose()
          command.act?.()
          if (command.to) go(command.to)
        },
      })),
    },
  ]
  return groups.filter((group) => group.choices.length > 0)
}

function messages({ hits, order, loose, turn, more }: Messages, visit: (address: string) => void): Choice[] {
  const choices: Choice[] = hits.map((hit) => ({
    key: `message ${hit.id}`,
    icon: <Sign icon={TextSearch} />,
    words: <Found hit={hit} />,
    act: () => {
      aim(hit.conversation, hit.id)
      visit(`/c/${hit.conversation}#${hit.id}`)
    },
  }))
  if (more)
    choices.push({ key: 'more', icon: <Sign icon={ChevronDown} />, words: <Line text="More messages" />, act: more })
  const other = order === 'newest' ? 'best' : 'newest'
  if ((hits.length > 1 && !loose) || order === 'meaning') {
    const text = {
      newest: 'Put the best first',
      best: 'Put the newest first',
      meaning: 'Find messages by their words',
    }[order]
    choices.push({
      key: 'order',
      icon: <Sign icon={ArrowDownUp} />,
      words: <Line text={text} />,
      act: () => turn(other),
    })
  }
  return choices
}

function byMeaning(turn: Messages['turn']): Choice {
  return {
    key: 'meaning',
    icon: <Sign icon={Lightbulb} />,
    words: <Line text="Find answers by meaning, whatever their words" />,
    act: () => turn('meaning'),
  }
}

function asideOf(conversation: Conversation): string {
  return [originOf(conversation), age(conversation.updated_at)].filter(Boolean).join(' · ')
}

function ranked<T>(all: readonly T[], query: string, textOf: (one: T) => string): T[] {
  if (!query) return [...all]
  return all
    .map((one) => ({ one, fits: fitness(textOf(one), query) }))
    .filter(({ fits }) => fits > 0)
    .sort((a, b) => b.fits - a.fits)
    .map(({ one }) => one)
}

function Sign({ icon: Icon }: { icon: LucideIcon }) {
  return <Icon size={17} aria-hidden className="shrink-0 text-muted" />
}

function Line({ text, aside }: { text: string; aside?: string }) {
  return (
    <div className="flex items-baseline gap-x-3 text-sm max-sm:flex-col">
      <span className="max-w-full min-w-0 truncate">{text}</span>
      {aside && <span className="shrink-0 text-xs text-faint sm:ml-auto">{aside}</span>}
    </div>
  )
}

function Found({ hit }: { hit: Hit }) {
  return (
    <>
      <div className="line-clamp-2 text-sm break-words">
        {pieces(hit.snippet).map(({ key, text, hit: matched }) =>
          matched ? <mark key={key}>{text}</mark> : <span key={key}>{text}</span>,
        )}
      </div>
      <div className="truncate text-xs text-faint">
        {[titleOf(hit), `${hit.role === 'user' ? 'you' : 'agent'}${PLACES[hit.column]}`, age(hit.at)].join(' · ')}
      </div>
    </>
  )
}
