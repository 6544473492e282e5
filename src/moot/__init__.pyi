"""The public names of moot, for type checkers and editors; `moot.library.names` is what they stand for."""

from moot.config.settings import Settings as Settings
from moot.errors import Busy as Busy
from moot.errors import Cancelled as Cancelled
from moot.errors import ConfigError as ConfigError
from moot.errors import FenceLost as FenceLost
from moot.errors import LimitReached as LimitReached
from moot.errors import MootError as MootError
from moot.errors import NeedsApproval as NeedsApproval
from moot.errors import NotFound as NotFound
from moot.errors import OutputContract as OutputContract
from moot.errors import ProviderError as ProviderError
from moot.errors import Refused as Refused
from moot.errors import StoreCorrupt as StoreCorrupt
from moot.errors import StoreError as StoreError
from moot.errors import StoreFull as StoreFull
from moot.errors import StoreTooNew as StoreTooNew
from moot.errors import UsageError as UsageError
from moot.library.live import LiveRun as LiveRun
from moot.library.moot import Conversations as Conversations
from moot.library.moot import Moot as Moot
from moot.library.names import open as open
from moot.library.names import run_sync as run_sync
from moot.library.options import Asked as Asked
from moot.types.approval import Answer as Answer
from moot.types.approval import Approval as Approval
from moot.types.conversation import Conversation as Conversation
from moot.types.event import Event as Event
from moot.types.message import Message as Message
from moot.types.run import Run as Run
from moot.types.tool import Question as Question
from moot.types.usage import Usage as Usage

__version__: str
