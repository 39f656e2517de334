"""What if: a request of the journal, asked again under another answer to an unknown.

Three doubles are made for it, with the running double's applications and settings: two under the
answers in force, and one under the other. Where the first two differ, ids and times differ; where
they agree and the third does not, the other answer made the difference. What the request relied on
is made on each by earlier requests of the journal (``answering``). The doubles end with the request.
The code of an application that was handed in runs in this process: what it keeps outside of the
application, such as in variables of its module, is the running double's, too.

==================  ==============================================================
``routes``          the question, its answer, and the refusals
``answering``       the three doubles, for a bounded time, and what is sent to each
``differences``     what differs between three answers
``beside``          the settings of such a double
==================  ==============================================================
"""

from agentdouble.what_if.beside import Beside, settings_beside

__all__ = ["Beside", "settings_beside"]
